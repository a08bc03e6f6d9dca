package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
)

func duplex(ctx context.Context, t *testing.T, client pb.TestServiceClient) pb.TestService_FullDuplexCallClient {
	t.Helper()
	s, err := client.FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pingPong sends a message and receives the answer.
func pingPong(s pb.TestService_FullDuplexCallClient) error {
	if err := s.Send(&pb.StreamingOutputCallRequest{}); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	_, err := s.Recv()
	return err
}

func TestAStreamIsChargedWhenItBegins(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "2/1h"), grpclimit.Options{}))
	s := duplex(t.Context(), t, client)
	for range 5 {
		wantCode(t, pingPong(s), codes.OK)
	}
	out, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := out.Recv()
		wantCode(t, err, codes.OK)
	}
	err = pingPong(duplex(t.Context(), t, client))
	wantCode(t, err, codes.ResourceExhausted)
	if detail[*errdetails.RetryInfo](t, err) == nil || len(detail[*errdetails.QuotaFailure](t, err).GetViolations()) != 1 {
		t.Errorf("the details are %v, want when to retry, and one violation", status.Convert(err).Details())
	}
}

// recoverStream answers a stream whose handler panics.
func recoverStream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.Error(codes.Internal, "recovered")
		}
	}()
	return next(srv, ss)
}

// A place of a concurrent limit is taken for as long as the stream lasts, however it ends.
func TestAStreamHoldsItsPlace(t *testing.T) {
	started := make(chan struct{}, 1)
	handle := func(both pb.TestService_FullDuplexCallServer) error {
		started <- struct{}{}
		switch m, err := both.Recv(); {
		case err != nil:
			return err
		case len(m.GetPayload().GetBody()) > 0:
			panic(string(m.GetPayload().GetBody()))
		}
		return status.Error(codes.Aborted, "as it was asked to")
	}
	places := limiter(t, "concurrent 1 lease=1h")
	s := server(t, places, grpclimit.Options{})
	client := pb.NewTestServiceClient(dial(t, listen(t, &service{duplex: handle}, grpc.ChainStreamInterceptor(recoverStream, s.Stream))))

	for name, end := range map[string]func(s pb.TestService_FullDuplexCallClient, cancel func()){
		"an error": func(s pb.TestService_FullDuplexCallClient, _ func()) { _ = s.Send(&pb.StreamingOutputCallRequest{}) },
		"a panic": func(s pb.TestService_FullDuplexCallClient, _ func()) {
			_ = s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte("!")}})
		},
		"the client":   func(s pb.TestService_FullDuplexCallClient, _ func()) { _ = s.CloseSend() },
		"cancellation": func(_ pb.TestService_FullDuplexCallClient, cancel func()) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		first := duplex(ctx, t, client)
		<-started
		_, err := duplex(t.Context(), t, client).Recv()
		wantCode(t, err, codes.ResourceExhausted)
		end(first, cancel)
		_, _ = first.Recv()
		eventually(t, name+": the place is not given back", func() bool { return free(t, places) })
		cancel()
	}
}

// free reports whether a limiter has room for the clients of 127.0.0.1.
func free(t *testing.T, l *weir.Limiter) bool {
	t.Helper()
	d, err := l.Peek(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining > 0
}

// eventually returns when a condition holds. Only the test binary has a deadline.
func eventually(t *testing.T, failure string, holds func() bool) {
	t.Helper()
	t.Logf("if this does not end: %s", failure)
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}

func TestAStreamThatIsLongerThanItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, limiter(t, "concurrent 1 lease=1m"), grpclimit.Options{})
		client, end := within(t, &service{}, nil, chain(s)...)
		defer end()
		first := duplex(t.Context(), t, client)
		wantCode(t, pingPong(first), codes.OK)
		time.Sleep(10 * time.Minute)
		wantCode(t, pingPong(duplex(t.Context(), t, client)), codes.ResourceExhausted)
		wantCode(t, pingPong(first), codes.OK)
		_ = first.CloseSend()
		_, _ = first.Recv()
		synctest.Wait()
		second := duplex(t.Context(), t, client)
		wantCode(t, pingPong(second), codes.OK)
	})
}

func TestMessagesAreCounted(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "3/1h"), grpclimit.Options{PerMessage: true, Headers: header.Draft11}))
	s := duplex(t.Context(), t, client)
	for range 3 {
		wantCode(t, pingPong(s), codes.OK)
	}
	err := pingPong(s) // the handler answers OK when it can't receive
	wantCode(t, err, codes.ResourceExhausted)
	if detail[*errdetails.RetryInfo](t, err) == nil {
		t.Errorf("the error is %v, want one that says when to retry", err)
	}
	wantCode(t, pingPong(duplex(t.Context(), t, client)), codes.ResourceExhausted)
	wantCode(t, empty(t.Context(), client), codes.ResourceExhausted) // a unary call is one message
}

func TestMessagesHaveCosts(t *testing.T) {
	cost := func(_ context.Context, _ string, m any) int64 {
		return int64(len(m.(*pb.StreamingInputCallRequest).GetPayload().GetBody()))
	}
	var received atomic.Int64
	input := func(in pb.TestService_StreamingInputCallServer) error {
		for {
			_, err := in.Recv()
			if errors.Is(err, io.EOF) {
				return in.SendAndClose(&pb.StreamingInputCallResponse{})
			} else if err != nil {
				if _, again := in.Recv(); status.Code(again) != status.Code(err) {
					t.Errorf("after %v the next message is %v, want the refusal again", err, again)
				}
				return status.Error(codes.Internal, "not the refusal")
			}
			received.Add(1)
		}
	}
	client := serve(t, &service{input: input}, server(t, limiter(t, "10/1h"), grpclimit.Options{PerMessage: true, Cost: cost}))
	for _, c := range []struct {
		sizes []int
		want  codes.Code
	}{{[]int{3, 3}, codes.OK}, {[]int{3, 3, 1}, codes.ResourceExhausted}, {[]int{11}, codes.FailedPrecondition}} {
		s, err := client.StreamingInputCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range c.sizes {
			_ = s.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, size)}})
		}
		_, err = s.CloseAndRecv()
		if status.Code(err) != c.want {
			t.Errorf("messages of %v: %v, want %v", c.sizes, err, c.want)
		}
	}
	if received.Load() != 3 {
		t.Errorf("the handler got %d messages, want 3", received.Load())
	}
}

func TestMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, limiter(t, "1/1s burst=1"), grpclimit.Options{PerMessage: true, MaxWait: 2 * time.Second})
		client, end := within(t, &service{}, nil, chain(s)...)
		defer end()
		start := time.Now()
		stream := duplex(t.Context(), t, client)
		for range 4 {
			wantCode(t, pingPong(stream), codes.OK)
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("4 messages took %v, want 3 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start = time.Now()
		err := pingPong(duplex(ctx, t, client))
		wantCode(t, err, codes.ResourceExhausted)
		if took := time.Since(start); took != 0 {
			t.Errorf("a message that could not wait was refused after %v, want at once", took)
		}
	})
}

func TestAMessageThatWouldWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, limiter(t, "1/3s burst=1"), grpclimit.Options{PerMessage: true, MaxWait: 2 * time.Second})
		client, end := within(t, &service{}, nil, chain(s)...)
		defer end()
		start := time.Now()
		stream := duplex(t.Context(), t, client)
		wantCode(t, pingPong(stream), codes.OK)
		wantCode(t, pingPong(stream), codes.ResourceExhausted)
		if took := time.Since(start); took != 0 {
			t.Errorf("it was refused after %v, want at once", took)
		}
	})
}

// Of a concurrent limit a message has a place until the handler asks for the next.
func TestAMessageHoldsItsPlace(t *testing.T) {
	at := make(chan struct{})
	next := make(chan struct{})
	handle := func(both pb.TestService_FullDuplexCallServer) error {
		for {
			m, err := both.Recv()
			if err != nil {
				return err
			}
			at <- struct{}{}
			<-next
			if len(m.GetPayload().GetBody()) > 0 {
				return status.Error(codes.Aborted, "as it was asked to")
			}
		}
	}
	places := limiter(t, "concurrent 1 lease=1h")
	client := serve(t, &service{duplex: handle}, server(t, places, grpclimit.Options{PerMessage: true}))
	s := duplex(t.Context(), t, client)
	for range 2 {
		if err := s.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		<-at
		if free(t, places) {
			t.Error("nobody has the place while a message is worked on")
		}
		next <- struct{}{}
		eventually(t, "the place is not given back", func() bool { return free(t, places) })
	}
	if err := s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte("last")}}); err != nil {
		t.Fatal(err)
	}
	<-at
	next <- struct{}{}
	_, err := s.Recv()
	wantCode(t, err, codes.Aborted)
	if !free(t, places) {
		t.Error("the place of the last message is not given back")
	}
}

func TestALeakyQueueIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, limiter(t, "leaky-queue 1/1s queue=2"), grpclimit.Options{})
		client, end := within(t, &service{}, nil, chain(s)...)
		defer end()
		start := time.Now()
		results := make(chan error)
		for range 4 {
			go func() { results <- empty(t.Context(), client) }()
		}
		denied := 0
		for range 4 {
			if status.Code(<-results) == codes.ResourceExhausted {
				denied++
			}
		}
		if took := time.Since(start); denied != 1 || took != 2*time.Second {
			t.Errorf("%d of 4 calls were denied, and the others took %v; want 1, and 2 s", denied, took)
		}
		wantCode(t, pingPong(duplex(t.Context(), t, client)), codes.OK)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the stream began after %v, want 3 s", took)
		}
	})
}

func TestATurnThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		handler := &service{empty: func(context.Context) error { served++; return nil }}
		s := server(t, limiter(t, "leaky-queue 1/10s queue=1"), grpclimit.Options{})
		client, end := within(t, handler, nil, chain(s)...)
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, empty(ctx, client), codes.DeadlineExceeded)
		synctest.Wait()
		if served != 1 {
			t.Errorf("%d calls were served, want 1", served)
		}
		wantCode(t, empty(t.Context(), client), codes.OK) // it has the turn that was given up
	})
}
