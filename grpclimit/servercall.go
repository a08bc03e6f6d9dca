package grpclimit

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// A call is a context too, so that the functions of the Options, which a Gate calls with a request, find in it which call that is.
type call struct {
	context.Context //nolint:containedctx // it is one itself

	method  string
	message any // what is to be decided on: a unary call's request, a stream's message, or nil
	answer  Answer
	peer    peer.Peer
	url     url.URL
}

type callKey struct{}

// Value implements context.Context.
func (c *call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	if key == http.LocalAddrContextKey && c.peer.LocalAddr != nil {
		return c.peer.LocalAddr // as net/http has it: package identity looks there for Unix sockets, whose peers have names and no addresses
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *call { return r.Context().Value(callKey{}).(*call) } //nolint:forcetypeassert // the Gate has no other requests than ours

// request makes the request of HTTP that the call is on the wire. If identify is false the request
// has only the address of the peer, and the fields for the Gate's warning about untrusted proxies.
func (c *call) request(identify bool) *http.Request {
	c.url.Path = c.method
	r := &http.Request{Method: http.MethodPost, URL: &c.url, Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody}
	if p, ok := peer.FromContext(c.Context); ok {
		c.peer = *p
	}
	if c.peer.Addr != nil {
		r.RemoteAddr = c.peer.Addr.String()
		if c.peer.LocalAddr == nil && strings.HasPrefix(c.peer.Addr.Network(), "unix") {
			c.peer.LocalAddr = c.peer.Addr // it is of the same network
		}
	}
	if identify {
		r.Host, r.Header = fields(c.Context)
		if info, ok := c.peer.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &info.State
		}
	} else {
		r.Header = forwarded(c.Context)
	}
	return r.WithContext(c)
}

// forwarded returns the metadata in which proxies pass on the address of a client, as header
// fields; nil if there is none.
func forwarded(ctx context.Context) (h http.Header) {
	for _, name := range [...]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"} {
		if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
			if h == nil {
				h = http.Header{}
			}
			h[name] = values
		}
	}
	return h
}

// fields returns the authority and the metadata as header fields. What is reserved for the protocol, and so is not the caller's to say, is no field.
func fields(ctx context.Context) (host string, h http.Header) {
	md, _ := metadata.FromIncomingContext(ctx)
	h = make(http.Header, len(md))
	for name, values := range md {
		switch {
		case name == ":authority" && len(values) > 0:
			host = values[0]
		case strings.HasPrefix(name, ":"), strings.HasPrefix(name, "grpc-"):
		default:
			h[http.CanonicalHeaderKey(name)] = values
		}
	}
	return host, h
}
