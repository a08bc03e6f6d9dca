package grpclimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
)

// A Send that fails ends the stream, as gRPC has it: the caller, who need not receive then, leaves nothing behind on the server.
func TestAMessageThatIsNotSentEndsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, open atomic.Int64
		wait := func(ctx context.Context) error {
			begun.Add(1)
			open.Add(1)
			defer open.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		}
		s := &service{
			output: func(s pb.TestService_StreamingOutputCallServer) error { return wait(s.Context()) },
			input:  func(s pb.TestService_StreamingInputCallServer) error { return wait(s.Context()) },
			duplex: func(s pb.TestService_FullDuplexCallServer) error { return wait(s.Context()) },
		}
		five := func(context.Context, string, any) int64 { return 5 }
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1h"), PerMessage: true, Cost: five}))
		defer end()
		for range 3 {
			both, err := client.FullDuplexCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			in, err := client.StreamingInputCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the handlers have begun
			wantCode(t, both.Send(&pb.StreamingOutputCallRequest{}), codes.FailedPrecondition)
			wantCode(t, in.Send(&pb.StreamingInputCallRequest{}), codes.FailedPrecondition)
			_, err = client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{}) // sends a message
			wantCode(t, err, codes.FailedPrecondition)
		}
		synctest.Wait()
		if open.Load() != 0 || begun.Load() < 6 {
			t.Errorf("%d of %d handlers are still there, want none of 6 or more", open.Load(), begun.Load())
		}
	})
}

// A caller that goes away while a message waits for the pace is told that, and not that the stream has ended.
func TestACallerGoesWhileAMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := within(t, &service{}, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1h burst=1"), PerMessage: true}))
		defer end()
		ctx, cancel := context.WithCancel(t.Context())
		stream := duplex(ctx, t, client)
		wantCode(t, stream.Send(&pb.StreamingOutputCallRequest{}), codes.OK)
		time.AfterFunc(time.Second, cancel)
		wantCode(t, stream.Send(&pb.StreamingOutputCallRequest{}), codes.Canceled)
	})
}

// A limiter that becomes one of concurrency is no pace any more: nothing is sent, and nothing of it taken.
func TestAPaceThatBecomesConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		pace := limiter(t, "5/1s", weir.WithName("pace"))
		client, end := within(t, counting(&calls, nil), newClient(t, grpclimit.ClientOptions{Limiter: pace}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		if err := pace.SetLimit(weir.MustParseLimit("concurrent 2 lease=1h")); err != nil {
			t.Fatal(err)
		}
		free := func() int64 {
			d, err := pace.Peek(t.Context(), "passthrough:within")
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining
		}
		before := free()
		for range 3 {
			wantCode(t, empty(t.Context(), client), codes.FailedPrecondition)
		}
		if after := free(); before == 0 || after != before || calls.Load() != 1 {
			t.Errorf("%d places of %d are free, and %d calls arrived; want all, and 1", after, before, calls.Load())
		}
	})
}

// A stream that has ended lets go of its context, however long the caller's lives.
func TestAStreamThatHasEndedLeavesNothing(t *testing.T) {
	for _, kind := range []string{"one answer", "many"} {
		var ended func() error
		streamer := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			ended = ctx.Err
			return cc.NewStream(ctx, d, method, opts...)
		}
		desc := &grpc.StreamDesc{ServerStreams: kind == "many", ClientStreams: true}
		input := func(in pb.TestService_StreamingInputCallServer) error {
			return in.SendAndClose(&pb.StreamingInputCallResponse{})
		}
		cc := dial(t, listen(t, &service{input: input}))
		c := newClient(t, grpclimit.ClientOptions{})
		s, err := c.Stream(t.Context(), desc, cc, pb.TestService_StreamingInputCall_FullMethodName, streamer)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.RecvMsg(&pb.StreamingInputCallResponse{}); err != nil {
			t.Fatal(err)
		}
		if kind == "many" {
			if ended() != nil {
				t.Error("the stream ends before its end")
			}
			_ = s.RecvMsg(&pb.StreamingInputCallResponse{})
		}
		if ended() == nil {
			t.Errorf("%s: the stream has ended, and its context has not", kind)
		}
	}
}

// A message that gRPC itself does not send, as one that is too large, ends the stream too, and what it has is let go of.
func TestAMessageThatGRPCRefusesEndsItsStream(t *testing.T) {
	var ended func() error
	streamer := func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ended = ctx.Err
		return cc.NewStream(ctx, d, method, opts...)
	}
	duplex := func(both pb.TestService_FullDuplexCallServer) error { <-both.Context().Done(); return nil }
	cc := dial(t, listen(t, &service{duplex: duplex}))
	desc := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	s, err := newClient(t, grpclimit.ClientOptions{}).Stream(t.Context(), desc, cc, pb.TestService_FullDuplexCall_FullMethodName, streamer, grpc.MaxCallSendMsgSize(5))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMsg(&pb.StreamingOutputCallRequest{}); err != nil || ended() != nil {
		t.Fatalf("a message that is small enough: %v, and the context %v", err, ended())
	}
	wantCode(t, s.SendMsg(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: make([]byte, 100)}}), codes.ResourceExhausted)
	if ended() == nil {
		t.Error("the stream has ended, and its context has not")
	}
}
