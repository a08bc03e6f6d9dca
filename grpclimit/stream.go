package grpclimit

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir/admission"
)

// Stream is a grpc.StreamServerInterceptor. A stream is charged when it begins, or with PerMessage for each message; what it holds, such as a place of a concurrent limit, it holds until it ends.
func (s *Server) Stream(server any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if s.skips(ss.Context(), info.FullMethod) {
		return handler(server, ss)
	}
	st := &stream{ServerStream: ss, ctx: ss.Context(), server: s, method: info.FullMethod}
	if s.writesHeaders {
		t, outermost := headersOf(st.ctx, ss.SetHeader)
		if st.headers = t; outermost {
			st.ctx = t
			defer t.set()
		}
	}
	if s.opts.PerMessage {
		defer st.release()
		err := handler(server, st)
		if refused := st.refusal(); refused != nil {
			return refused
		}
		return err
	}
	return st.serve(server, handler)
}

// serve decides on the stream as a whole, and serves it.
func (st *stream) serve(server any, handler grpc.StreamHandler) error {
	c := &call{Context: st.ctx, method: st.method}
	a, refused := st.server.admit(c)
	if refused != nil {
		st.SetTrailer(pushback(a))
		return refused
	}
	c.answer = unanswered
	defer func() {
		c.answer.Received, c.answer.Sent = int(st.received.Load()), int(st.sent.Load())
		a.Finish(admission.Response{}) // Charge has c.answer
	}()
	if a.Await(st.ctx) != nil {
		c.answer = Answer{Code: codes.Canceled, Err: gone(st.ctx)}
		return c.answer.Err
	}
	ss := st.ServerStream
	if st.headers != nil || st.server.opts.Charge != nil {
		ss = st
	}
	err := handler(server, ss)
	c.answer = Answer{Code: codeOf(err), Err: err}
	return err
}

// A stream is gRPC's, as handlers get it: messages are counted, and refused, and before the header is sent the client's limits are in it.
type stream struct {
	grpc.ServerStream
	ctx            context.Context //nolint:containedctx // as gRPC's have it
	server         *Server
	method         string
	headers        *callHeaders
	received, sent atomic.Int64

	mu      sync.Mutex
	held    *admission.Admission // of the message that the handler works on
	refused error
}

// Context implements grpc.ServerStream.
func (st *stream) Context() context.Context { return st.ctx }

// SendHeader implements grpc.ServerStream.
func (st *stream) SendHeader(md metadata.MD) error {
	st.set()
	return st.ServerStream.SendHeader(md)
}

// SendMsg implements grpc.ServerStream.
func (st *stream) SendMsg(m any) error {
	st.set()
	err := st.ServerStream.SendMsg(m)
	if err == nil {
		st.sent.Add(1)
	}
	return err
}

func (st *stream) set() {
	if st.headers != nil {
		st.headers.set()
	}
}

// RecvMsg implements grpc.ServerStream.
func (st *stream) RecvMsg(m any) error {
	st.release()
	if err := st.refusal(); err != nil {
		return err
	}
	if err := st.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	st.received.Add(1)
	if !st.server.opts.PerMessage {
		return nil
	}
	return st.admit(&call{Context: st.ctx, method: st.method, message: m})
}
