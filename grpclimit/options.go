package grpclimit

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/store"
)

// Options for NewServer. The zero Options count clients by their address, one unit for each call. A method is given in full, as /package.Service/Method.
type Options struct {
	// Name is what clients are told that the limiter is called. "": its limit's text. Of policies it must be empty: they have names.
	Name string
	// Key is who is counted, by a limiter. Nil: the client's address, of IPv6 the first 64 bits. Of policies it must be nil: they have keys.
	Key identity.Key
	// Cost is what a call costs; 0 is a peek. Of a stream the message is nil, unless it is of PerMessage. Nil: 1, or what the policies say.
	Cost func(ctx context.Context, method string, message any) int64
	// Override returns a limiter for the call in place of the usual one; nil is the usual one. Of policies it must be nil: they have plans.
	Override func(ctx context.Context, method string) *weir.Limiter
	// ClientIP is through which proxies a client's address comes, which tell of it in metadata. Nil: through none.
	ClientIP *identity.ClientIP
	// Attributes are what policies are told of a call besides, by name.
	Attributes map[string]identity.Source
	// Skip reports whether a call passes without being looked at.
	Skip func(ctx context.Context, method string) bool
	// Charge says what a call costs once it is answered. Until then Cost is held for it, so that no more calls are under way than the limit has room for; what is
	// less is given back, and what is more is owed. A limiter must have a name for it (weir.WithName). Nil: the cost is known beforehand.
	Charge func(ctx context.Context, method string, answer Answer) int64
	// Hold is the life of an estimate between renewals: 1ms to 24h. 0: admission.DefaultHold. The
	// estimate is renewed until the call or stream is answered; see admission.Options. Hold is for
	// Charge.
	Hold time.Duration
	// OnStoreError is the decision while the limiter's store fails: calls are refused (store.Deny),
	// pass (store.Allow), or are limited in the memory of this process (store.Local,
	// store.LocalShare). With store.Deny, the zero value, it is the limiter's own
	// (weir.WithOnStoreError). For policies it must be store.Deny: they have on_store_error.
	OnStoreError store.OnError
	// Log receives a warning when no decision could be made, and a warning, with the address of the
	// peer, when a call with x-forwarded-for, forwarded or x-real-ip does not come from a trusted
	// proxy. Nil: slog.Default().
	Log *slog.Logger

	// PerMessage counts, of streams, each message that the client sends in place of the stream. What a message holds, such as a place of a concurrent
	// limit, it holds until the handler asks for the next. The first message that is refused ends the stream. There is no Charge for messages.
	PerMessage bool
	// MaxWait is how long, at most, a message waits that would be refused: it is not received before there is room for it, and the client is slowed down by
	// gRPC's flow control. Of several streams' messages that wait none goes first by right: each asks again when there may be room, and at least once a second. 0: it does not wait.
	// It is for PerMessage.
	MaxWait time.Duration
	// Headers are the header metadata that tell clients of the limits, on every answer, as the header fields of HTTP do. 0, and header.None: none.
	// The retries that are built into gRPC only retry answers without header metadata; for clients that rely on them, leave it at 0.
	Headers header.Formats
}

// An Answer is what became of a call.
type Answer struct {
	Code     codes.Code
	Err      error // of the handler; nil if Code is OK
	Response any   // of a unary call that succeeded
	Received int   // messages that the handler of a stream has received, and
	Sent     int   // has sent
}

// Failures charges 1 for a call that fails, and nothing for others: for logins. A call whose client has gone away before it was answered may have failed too, and is charged.
func Failures(_ context.Context, _ string, a Answer) int64 {
	if a.Code != codes.OK {
		return 1
	}
	return 0
}

// Successes charges 1 for a call that does not fail, and nothing for others.
func Successes(_ context.Context, _ string, a Answer) int64 {
	if a.Code == codes.OK {
		return 1
	}
	return 0
}

func (o *Options) check() error {
	switch {
	case o.MaxWait < 0:
		return &admission.OptionError{Field: "MaxWait", Value: o.MaxWait.String(), Accept: "0, or how long a message may wait"}
	case o.MaxWait > 0 && !o.PerMessage:
		return &admission.OptionError{Field: "MaxWait", Value: o.MaxWait.String(), Accept: "nothing but 0 without PerMessage: calls do not wait"}
	case o.PerMessage && o.Charge != nil:
		return &admission.OptionError{Field: "Charge", Value: "set", Accept: "nil with PerMessage: a message has no answer"}
	}
	if err := o.Headers.Err(); err != nil {
		return fmt.Errorf("grpclimit: Headers: %w", err)
	}
	return nil
}

// admission returns the options for a Gate, whose requests are calls.
func (o *Options) admission() admission.Options {
	opts := admission.Options{
		Name: o.Name, Key: o.Key, ClientIP: o.ClientIP, Attributes: o.Attributes, Hold: o.Hold, OnStoreError: o.OnStoreError, Log: o.Log,
	}
	if cost := o.Cost; cost != nil {
		opts.Cost = func(r *http.Request) int64 { c := callOf(r); return cost(c.Context, c.method, c.message) }
	}
	if override := o.Override; override != nil {
		opts.Override = func(r *http.Request) *weir.Limiter { c := callOf(r); return override(c.Context, c.method) }
	}
	if charge := o.Charge; charge != nil {
		opts.Charge = func(r *http.Request, _ admission.Response) int64 {
			c := callOf(r)
			return charge(c.Context, c.method, c.answer)
		}
	}
	return opts
}
