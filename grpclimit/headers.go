package grpclimit

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// callHeaders collects the header metadata of a call for its client. The outermost of our interceptors
// makes it, and the inner ones add to it, because metadata that was set can be neither read nor
// replaced. It is set when the header is sent, or may be.
//
// It is a context, the one of the handler. A handler that takes gRPC's stream from it sets or sends
// the header metadata of a unary call: then ours is set first.
type callHeaders struct {
	context.Context //nolint:containedctx // it is one itself

	setHeader func(metadata.MD) error

	mu     sync.Mutex
	fields http.Header
	names  map[string]bool
	done   bool // it was set
}

type callHeadersKey struct{}

func headersOf(ctx context.Context, setHeader func(metadata.MD) error) (t *callHeaders, outermost bool) {
	if t, ok := ctx.Value(callHeadersKey{}).(*callHeaders); ok {
		return t, false
	}
	return &callHeaders{Context: ctx, setHeader: setHeader, fields: http.Header{}, names: map[string]bool{}}, true
}

// Value implements context.Context.
func (t *callHeaders) Value(key any) any {
	if _, ok := key.(callHeadersKey); ok {
		return t
	}
	v := t.Context.Value(key)
	if _, ok := v.(grpc.ServerTransportStream); ok {
		t.set()
	}
	return v
}

// add adds each limit. After the header metadata was set, it adds the limits that are not named there.
func (t *callHeaders) add(f header.Formats, a *admission.Admission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var each []admission.Standing
	for s := range a.Each() {
		if !t.done || !t.names[s.Name] {
			each = append(each, s)
		}
		t.names[s.Name] = true
	}
	if !t.done {
		f.Write(t.fields, each, time.Now())
		return
	}
	if len(each) > 0 && f&header.Draft11 != 0 {
		more := http.Header{}
		header.Draft11.Write(more, each, time.Now())
		_ = t.setHeader(lower(more)) // fails if the header is sent
	}
}

// set sets the header metadata, once.
func (t *callHeaders) set() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.done {
		t.done = true
		_ = t.setHeader(lower(t.fields)) // fails if the header is sent, or the client has gone
	}
}

// lower returns header fields as metadata.
func lower(h http.Header) metadata.MD {
	md := make(metadata.MD, len(h))
	for name, values := range h {
		md[strings.ToLower(name)] = values
	}
	return md
}
