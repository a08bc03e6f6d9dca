package grpclimit_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/internal/pacing"
)

// within serves s within a bubble of synctest, whose time is not real, and returns a client of its, and what ends both.
func within(t *testing.T, s pb.TestServiceServer, c *grpclimit.Client, opts ...grpc.ServerOption) (client pb.TestServiceClient, end func()) {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(server, s)
	go server.Serve(l)
	dials := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
	}
	if c != nil {
		dials = append(dials, grpc.WithUnaryInterceptor(c.Unary), grpc.WithStreamInterceptor(c.Stream))
	}
	cc, err := grpc.NewClient("passthrough:within", dials...)
	if err != nil {
		t.Fatal(err)
	}
	return pb.NewTestServiceClient(cc), func() {
		cc.Close()
		server.Stop()
		synctest.Wait()
	}
}

func newClient(t *testing.T, opts grpclimit.ClientOptions) *grpclimit.Client {
	t.Helper()
	c, err := grpclimit.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counting is a service that counts its calls, and refuses those that it is told to.
func counting(calls *atomic.Int64, refuse func(n int64) error) *service {
	return &service{empty: func(context.Context) error {
		n := calls.Add(1)
		if refuse == nil {
			return nil
		}
		return refuse(n)
	}}
}

func refusedFor(code codes.Code, wait time.Duration) error {
	s, _ := status.New(code, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	return s.Err()
}

func empty(ctx context.Context, client pb.TestServiceClient, opts ...grpc.CallOption) error {
	_, err := client.EmptyCall(ctx, &pb.Empty{}, opts...)
	return err
}

// Pitfall W1: calls are as far from each other as the limit has it, whenever they come.
func TestW1CallsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var at []time.Duration
		start := time.Now()
		s := &service{empty: func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(start))
			return nil
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1s burst=1")}))
		defer end()
		time.Sleep(900 * time.Millisecond)
		wantCode(t, empty(t.Context(), client), codes.OK)
		time.Sleep(100 * time.Millisecond)
		wantCode(t, empty(t.Context(), client), codes.OK)
		if len(at) != 2 || at[1]-at[0] != time.Second {
			t.Errorf("the calls were at %v, want 1 s between", at)
		}
	})
}

// Pitfall W2: a call that can't pass before its deadline fails at once, is not sent, and takes nothing.
func TestW2AHopelessDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		pace := limiter(t, "1/5s burst=1")
		client, end := within(t, counting(&calls, nil), newClient(t, grpclimit.ClientOptions{Limiter: pace}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := empty(ctx, client)
		wantCode(t, err, codes.DeadlineExceeded)
		if took := time.Since(start); took != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it took %v to fail with %v, want no time, and what is context.DeadlineExceeded", took, err)
		}
		wantCode(t, empty(t.Context(), client), codes.OK)
		if took := time.Since(start); took != 5*time.Second || calls.Load() != 2 {
			t.Errorf("the next call came after %v, and %d arrived; want 5 s and 2", took, calls.Load())
		}
	})
}

// Pitfall W3: when the pace is raised, calls that wait are sent sooner.
func TestW3APaceThatIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		pace := limiter(t, "1/1h burst=1", weir.WithName("pace"))
		client, end := within(t, counting(&calls, nil), newClient(t, grpclimit.ClientOptions{Limiter: pace}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		start := time.Now()
		done := make(chan error)
		go func() { done <- empty(t.Context(), client) }()
		synctest.Wait()
		if err := pace.SetLimit(weir.MustParseLimit("1/1s burst=1")); err != nil {
			t.Fatal(err)
		}
		wantCode(t, <-done, codes.OK)
		if took := time.Since(start); took > time.Second {
			t.Errorf("the call that waited was sent after %v, want 1 s", took)
		}
	})
}

func TestCallsWaitForAsLongAsTheServerSays(t *testing.T) {
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Unavailable} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			s := counting(&calls, func(n int64) error {
				if n == 1 {
					return refusedFor(code, 10*time.Second)
				}
				return nil
			})
			client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
			defer end()
			wantCode(t, empty(t.Context(), client), code)
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
			defer cancel()
			wantCode(t, empty(ctx, client), codes.DeadlineExceeded)
			if took := time.Since(start); took != 0 || calls.Load() != 1 {
				t.Errorf("a call with too little time took %v, and %d arrived; want 0 s and 1", took, calls.Load())
			}
			_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{})
			wantCode(t, err, codes.OK)
			if took := time.Since(start); took > time.Second {
				t.Errorf("another method waited for %v, want it not to: nothing was said of it", took)
			}
			wantCode(t, empty(t.Context(), client), codes.OK)
			if took := time.Since(start); took < 10*time.Second || took > 11*time.Second+time.Millisecond {
				t.Errorf("the call was sent after %v, want 10 s and up to a tenth more", took)
			}
		})
	}
}

func TestAServerAsksForTooLongAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(int64) error { return refusedFor(codes.ResourceExhausted, 87600*time.Hour) })
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{MaxWait: 5 * time.Second, Retries: 3}))
		defer end()
		first := empty(t.Context(), client)
		if wantCode(t, first, codes.ResourceExhausted); status.Convert(first).Message() != "no" {
			t.Errorf("the error is %v, want the server's: a retry is out of the question", first)
		}
		start := time.Now()
		err := empty(t.Context(), client)
		wantCode(t, err, codes.ResourceExhausted)
		if wait := detail[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration(); wait < time.Hour-10*time.Second || wait > time.Hour {
			t.Errorf("the call can be made again after %v, want an hour, or some seconds less by chance", wait)
		}
		if long, ok := errors.AsType[*pacing.WaitError](err); !ok || long.Most != 5*time.Second {
			t.Errorf("the error is %v, want one that is a *pacing.WaitError of 5 s", err)
		}
		if calls.Load() != 1 || time.Since(start) != 0 {
			t.Errorf("%d calls arrived in %v, want the first alone", calls.Load(), time.Since(start))
		}
		time.Sleep(time.Hour + 10*time.Second)
		_ = empty(t.Context(), client)
		if calls.Load() != 2 {
			t.Errorf("%d calls arrived, want a second after an hour, however long the server wanted none", calls.Load())
		}
	})
}

func TestRefusedCallsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(n int64) error {
			switch {
			case n <= 2:
				return refusedFor(codes.ResourceExhausted, time.Second)
			case n == 4:
				return status.Error(codes.ResourceExhausted, "a message that is too large")
			case n >= 5:
				return refusedFor(codes.ResourceExhausted, time.Second)
			}
			return nil
		})
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Retries: 2}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		if calls.Load() != 3 {
			t.Errorf("%d calls arrived, want 3", calls.Load())
		}
		wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
		if calls.Load() != 4 {
			t.Errorf("%d calls arrived, want 4: one that does not say when to come back is not sent again", calls.Load())
		}
		start := time.Now()
		wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
		if took := time.Since(start); calls.Load() != 7 || took < 2*time.Second {
			t.Errorf("%d calls arrived in %v, want 3 more, a second apart", calls.Load()-4, took)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		wantCode(t, empty(ctx, client), codes.ResourceExhausted)
		if calls.Load() != 8 {
			t.Errorf("%d calls arrived, want 8: with no time left there is no retry", calls.Load())
		}
	})
}

// With a Client, a Server of ours refuses one call at most at a time: the others wait.
func TestClientAndServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := limiter(t, "2/10s burst=2")
		opts := chain(server(t, calls, grpclimit.Options{Headers: header.Draft11}))
		client, end := within(t, &service{}, newClient(t, grpclimit.ClientOptions{Retries: 1}), opts...)
		defer end()
		for i := range 6 {
			if err := empty(t.Context(), client); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

func TestStreamsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := within(t, &service{}, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1s burst=1")}))
		defer end()
		start := time.Now()
		for range 3 {
			s, err := client.FullDuplexCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				if err := s.Send(&pb.StreamingOutputCallRequest{}); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Recv(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("3 streams took %v, want 2 s", took)
		}
	})
}

func TestMessagesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, end := within(t, &service{}, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1s burst=1"), PerMessage: true}))
		defer end()
		start := time.Now()
		s, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if err := s.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("4 messages took %v, want 3 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		late, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, late.Send(&pb.StreamingOutputCallRequest{}), codes.DeadlineExceeded)
	})
}

func TestAStreamIsRefusedAndTheNextOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		s := &service{duplex: func(pb.TestService_FullDuplexCallServer) error {
			if begun.Add(1) == 1 {
				return refusedFor(codes.ResourceExhausted, 3*time.Second)
			}
			return nil
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
		defer end()
		stream, err := client.FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		wantCode(t, err, codes.ResourceExhausted)
		start := time.Now()
		if _, err := client.FullDuplexCall(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < 3*time.Second {
			t.Errorf("the next stream began after %v, want 3 s", took)
		}
	})
}

// Pitfall H8, of clients.
func TestH8ClientOptionsThatMakeNoSense(t *testing.T) {
	for name, opts := range map[string]grpclimit.ClientOptions{
		"MaxWait below 0":              {MaxWait: -1},
		"Retries below 0":              {Retries: -1},
		"PerMessage without a limiter": {PerMessage: true},
		"Cost without a limiter":       {Cost: func(context.Context, string, any) int64 { return 1 }},
		"a concurrent limit":           {Limiter: limiter(t, "concurrent 5 lease=1m")},
		"the zero Limiter":             {Limiter: new(weir.Limiter)},
	} {
		if c, err := grpclimit.NewClient(opts); err == nil || c != nil {
			t.Errorf("%s: %v and %v, want an error", name, c, err)
		}
	}
}
