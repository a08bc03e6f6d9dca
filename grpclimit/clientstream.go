package grpclimit

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// longestAwaited is how long a stream that begins holds back those that come after a pause, if nothing is received of it. It may be one that only sends.
const longestAwaited = 2 * time.Second

// A clientStream paces what is sent, and learns from what is received.
type clientStream struct {
	grpc.ClientStream
	call    *clientCall
	ctx     context.Context //nolint:containedctx // of the call; the stream's own ends with the stream
	abort   func()          // ends the stream, and frees what it has
	single  bool            // there is one message to receive
	awaited *time.Timer     // gives its ticket back, if nothing is received
	heard   atomic.Bool     // something was received
}

// SendMsg implements grpc.ClientStream. As gRPC has it, a stream of which a message could not be sent has ended: who called need do no more.
func (s *clientStream) SendMsg(m any) error {
	if s.call.client.opts.PerMessage {
		if _, err := s.call.pace(s.Context(), m); err != nil {
			if s.Context().Err() != nil && s.ctx.Err() == nil {
				return io.EOF // as of a stream that has ended: RecvMsg says how
			}
			s.abort()
			return err
		}
	}
	err := s.ClientStream.SendMsg(m)
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: it has ended, and RecvMsg says how
		s.abort()
	}
	return err
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	first := !s.heard.Swap(true)
	if first || err != nil {
		s.learn(err, first)
	}
	if err != nil || s.single {
		s.abort() // it has ended; this lets go of the context
	}
	return err
}

// learn keeps what the stream's header says, and at its end what that says.
func (s *clientStream) learn(err error, first bool) {
	var head, trailer metadata.MD
	if first {
		s.awaited.Stop()
		head, _ = s.Header()
	}
	if err != nil {
		trailer = s.Trailer()
	}
	if errors.Is(err, io.EOF) { // the end of a stream that succeeds
		if err = nil; !first && len(read(trailer).Limits) == 0 {
			return
		}
	}
	s.call.answered(err, head, trailer)
}
