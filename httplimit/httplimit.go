// Package httplimit limits HTTP: middleware for servers, and a transport for clients that keeps to what servers say.
package httplimit

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/felixge/httpsnoop"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
)

// Options for New. The zero Options count clients by their address, one unit for each request, and tell them of the limit as draft 11 of the IETF has it.
type Options struct {
	// Name, Key, Cost, Override, ClientIP, Attributes, Skip, Charge, Hold, OnStoreError and Log are those of admission.Options.
	Name         string
	Key          identity.Key
	Cost         func(*http.Request) int64
	Override     func(*http.Request) *weir.Limiter
	ClientIP     *identity.ClientIP
	Attributes   map[string]identity.Source
	Skip         func(*http.Request) bool
	Charge       func(*http.Request, admission.Response) int64
	Hold         time.Duration
	OnStoreError admission.OnStoreError
	Log          *slog.Logger

	// Headers are the header fields that tell clients of the limits, on every answer. 0: header.Draft11.
	Headers header.Formats
	// Respond, if not nil, answers the requests that are refused, in place of a problem document. The header fields are set.
	Respond func(http.ResponseWriter, *http.Request, Refusal)
}

// A Refusal is the answer to a request that may not pass.
type Refusal struct {
	admission.Admission
	Status int // 429; 422 of a cost that never passes, 403 of a plan that is deny, 503 if the store could not decide, 400 of a cost that is none
}

// New returns middleware that serves the requests that the limits let pass, and refuses others. It returns an error for options that make no sense.
func New[L admission.Limits](limits L, opts Options) (func(http.Handler) http.Handler, error) {
	gate, err := admission.New(limits, admission.Options{
		Name: opts.Name, Key: opts.Key, Cost: opts.Cost, Override: opts.Override, ClientIP: opts.ClientIP, Attributes: opts.Attributes, Skip: opts.Skip,
		Charge: opts.Charge, Hold: opts.Hold, OnStoreError: opts.OnStoreError, Log: opts.Log,
	})
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := gate.Admit(r)
			if !a.Outcome.Pass() {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			m := httpsnoop.CaptureMetrics(next, w, r)
			a.Finish(admission.Response{Status: m.Code, Bytes: m.Written, Header: w.Header()})
		})
	}, nil
}
