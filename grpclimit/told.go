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

// told is what the client of a call is told of the limits in header metadata. The outermost of our interceptors makes it, and those inside add to it, because metadata
// that has been set can be neither read nor replaced. It is set when the header is sent, or may be.
//
// It is a context, the one that handlers get. Whoever asks that for gRPC's stream does so to set or send the header metadata of a unary call, which is the last
// moment for ours.
type told struct {
	context.Context //nolint:containedctx // it is one itself

	setHeader func(metadata.MD) error

	mu     sync.Mutex
	fields http.Header
	names  map[string]bool
	set    bool
}

type toldKey struct{}

// telling returns what the call's client is told so far, and whether that is new.
func telling(ctx context.Context, setHeader func(metadata.MD) error) (t *told, outermost bool) {
	if t, ok := ctx.Value(toldKey{}).(*told); ok {
		return t, false
	}
	return &told{Context: ctx, setHeader: setHeader, fields: http.Header{}, names: map[string]bool{}}, true
}

// Value implements context.Context.
func (t *told) Value(key any) any {
	if _, ok := key.(toldKey); ok {
		return t
	}
	v := t.Context.Value(key)
	if _, ok := v.(grpc.ServerTransportStream); ok {
		t.tell()
	}
	return v
}

// add adds what stands for each limit. If the header metadata is set already, what can be added to it is: limits that are not named there.
func (t *told) add(f header.Formats, a *admission.Admission) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var each []admission.Standing
	for s := range a.Each() {
		if !t.set || !t.names[s.Name] {
			each = append(each, s)
		}
		t.names[s.Name] = true
	}
	if !t.set {
		f.Write(t.fields, each, time.Now())
		return
	}
	if len(each) > 0 && f&header.Draft11 != 0 {
		more := http.Header{}
		header.Draft11.Write(more, each, time.Now())
		_ = t.setHeader(lower(more)) // fails if the header is sent
	}
}

// tell sets the header metadata, once.
func (t *told) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.set {
		t.set = true
		_ = t.setHeader(lower(t.fields)) // fails if the header is sent, or the client has gone
	}
}

// lower makes metadata of header fields.
func lower(h http.Header) metadata.MD {
	md := make(metadata.MD, len(h))
	for name, values := range h {
		md[strings.ToLower(name)] = values
	}
	return md
}
