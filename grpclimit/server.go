package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// A Server serves the calls that its limits let pass, and refuses others. Its methods are interceptors, for any number of grpc.Servers at once:
//
//	grpc.NewServer(grpc.UnaryInterceptor(s.Unary), grpc.StreamInterceptor(s.Stream))
//
// Of several in a chain, each decides on the calls that those before it let pass.
type Server struct {
	gate          *admission.Gate
	opts          Options
	identify      bool // what calls say of themselves is looked at
	writesHeaders bool // 0 and header.None: it writes none
}

// NewServer returns a Server. It returns an error for options that make no sense.
func NewServer[L admission.Limits](limits L, opts Options) (*Server, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	gate, err := admission.New(limits, opts.admission())
	if err != nil {
		return nil, err
	}
	_, limiter := any(limits).(*weir.Limiter)
	return &Server{
		gate: gate, opts: opts,
		identify:      !limiter || opts.Key != nil || opts.ClientIP != nil,
		writesHeaders: opts.Headers&^header.None != 0,
	}, nil
}

// unanswered is the answer of a handler that does not return, because it panics.
var unanswered = Answer{Code: codes.Internal, Err: errors.New("grpclimit: the handler did not return")}

// Unary is a grpc.UnaryServerInterceptor.
//
//nolint:contextcheck // what a call holds is settled also when its context has ended
func (s *Server) Unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	if s.skips(ctx, info.FullMethod) {
		return handler(ctx, request)
	}
	if s.writesHeaders {
		t, outermost := headersOf(ctx, headerSetter(ctx))
		if outermost {
			ctx = t
			defer t.set()
		}
	}
	c := &call{Context: ctx, method: info.FullMethod, message: request}
	a, refused := s.admit(c)
	if refused != nil {
		_ = grpc.SetTrailer(ctx, pushback(a)) // fails if the client has gone
		return nil, refused
	}
	c.answer = unanswered
	defer a.Finish(admission.Response{}) // Charge has c.answer
	if a.Await(ctx) != nil {
		c.answer = Answer{Code: codes.Canceled, Err: gone(ctx)}
		return nil, c.answer.Err
	}
	response, err = handler(ctx, request)
	c.answer = Answer{Code: codeOf(err), Err: err, Response: response}
	return response, err
}

// headerSetter sets the header metadata of a unary call.
func headerSetter(ctx context.Context) func(metadata.MD) error {
	return func(md metadata.MD) error { return grpc.SetHeader(ctx, md) }
}

func (s *Server) skips(ctx context.Context, method string) bool {
	return s.opts.Skip != nil && s.opts.Skip(ctx, method)
}

// admit decides on a call or a message, and tells its client what stands for the limits. The error is the status of a call that is refused.
func (s *Server) admit(c *call) (*admission.Admission, error) {
	a := s.gate.Admit(c.request(s.identify))
	if s.writesHeaders && a.Outcome != admission.Skipped {
		if t, ok := c.Value(callHeadersKey{}).(*callHeaders); ok {
			t.add(s.opts.Headers, &a)
		}
	}
	if a.Outcome.Pass() {
		return &a, nil
	}
	return &a, refusal(c.Context, &a)
}

// codeOf is the code that gRPC sends for an error of a handler.
func codeOf(err error) codes.Code {
	if s, ok := status.FromError(err); ok {
		return s.Code()
	}
	return status.FromContextError(err).Code()
}
