package grpclimit

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// A clientStream paces what is sent, and learns from what is received.
type clientStream struct {
	grpc.ClientStream
	client      *Client
	ctx         context.Context //nolint:containedctx // of the call; the stream's own ends with the stream
	abort       func()          // ends the stream, and frees what it has
	single      bool            // there is one message to receive
	key, method string
	first       sync.Once
}

// SendMsg implements grpc.ClientStream. As gRPC has it, a stream of which a message could not be sent has ended: who called need do no more.
func (s *clientStream) SendMsg(m any) error {
	if s.client.opts.PerMessage {
		if _, err := s.client.pace(s.Context(), s.key, s.method, m); err != nil {
			if s.Context().Err() != nil && s.ctx.Err() == nil {
				return io.EOF // as of a stream that has ended: RecvMsg says how
			}
			s.abort()
			return err
		}
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	var head, trailer metadata.MD
	s.first.Do(func() { head, _ = s.Header() })
	failure := err
	if err != nil {
		trailer = s.Trailer()
	}
	if errors.Is(err, io.EOF) { // the end of a stream that succeeds
		failure = nil
	}
	s.client.learn(s.key, s.method, failure, head, trailer)
	if err != nil || s.single {
		s.abort() // it has ended; this lets go of the context
	}
	return err
}
