package grpclimit_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
)

// After a refusal one call goes first, and not all that wait: the server refuses few.
func TestOneCallGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived, served atomic.Int64
		count := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			arrived.Add(1)
			answer, err := next(ctx, r)
			if err == nil {
				served.Add(1)
			}
			return answer, err
		}
		s := server(t, limiter(t, "5/1s burst=1"), grpclimit.Options{})
		client, end := within(t, &service{}, newClient(t, grpclimit.ClientOptions{Retries: 1000}), grpc.ChainUnaryInterceptor(count, s.Unary))
		defer end()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _ = empty(t.Context(), client) })
		}
		all.Wait()
		// The first calls all go at once: nothing is known then. After that each is refused about once for each that is served.
		if served.Load() != 50 || arrived.Load() > 50+3*50 {
			t.Errorf("%d calls arrived for 50, of which %d were served; want all, and at most 200", arrived.Load(), served.Load())
		}
	})
}

// When a server says that some are left, no more than that are sent, those under way counted.
func TestNoMoreCallsThanAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := &service{empty: func(ctx context.Context) error {
			calls.Add(1)
			time.Sleep(time.Second)
			return grpc.SetHeader(ctx, metadata.Pairs("ratelimit", `"a";r=2;t=60`))
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{MaxWait: 10 * time.Second}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.OK)
		for range 5 {
			go func() { _ = empty(t.Context(), client) }()
		}
		synctest.Wait()
		if calls.Load() != 3 {
			t.Errorf("%d calls arrived while 2 were left after the first, want 3", calls.Load())
		}
		time.Sleep(time.Minute)
	})
}

// A stream of which nothing is received does not hold others back for long.
func TestAStreamThatOnlySendsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		s := &service{duplex: func(both pb.TestService_FullDuplexCallServer) error {
			if begun.Add(1) == 1 {
				return refusedFor(codes.ResourceExhausted, time.Second)
			}
			<-both.Context().Done()
			return nil
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
		defer end()
		_, err := duplex(t.Context(), t, client).Recv()
		wantCode(t, err, codes.ResourceExhausted)
		for range 2 {
			start := time.Now()
			_ = duplex(t.Context(), t, client)
			synctest.Wait()
			if took := time.Since(start); took < time.Second || took > 3*time.Second {
				t.Errorf("a stream began after %v, want 1 s to 3 s", took)
			}
		}
		if begun.Load() != 3 {
			t.Errorf("%d streams began, want 3", begun.Load())
		}
	})
}

// What a stream says at its end, when its header has long been sent, counts too.
func TestAStreamSaysMoreAtItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		trailer metadata.MD
		err     error
		min     time.Duration
	}{
		"a refusal": {metadata.Pairs("retry-after", "7"), status.Error(codes.ResourceExhausted, "no"), 7 * time.Second},
		"a success": {metadata.Pairs("ratelimit", `"a";r=0;t=7`), nil, 7 * time.Second},
		"nothing":   {nil, nil, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{duplex: func(both pb.TestService_FullDuplexCallServer) error {
				_ = both.Send(&pb.StreamingOutputCallResponse{})
				both.SetTrailer(c.trailer)
				return c.err
			}}
			client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
			defer end()
			stream := duplex(t.Context(), t, client)
			_, err := stream.Recv()
			wantCode(t, err, codes.OK)
			_, _ = stream.Recv()
			start := time.Now()
			_ = duplex(t.Context(), t, client)
			if took := time.Since(start); took < c.min || took > c.min+time.Second {
				t.Errorf("%s: the next stream began after %v, want %v", name, took, c.min)
			}
		})
	}
}

// What no server should say holds nothing up.
func TestRetryInfosThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		delay *durationpb.Duration
		calls int64 // with one retry
	}{
		"none":       {nil, 1},
		"impossible": {&durationpb.Duration{Seconds: 1 << 62}, 1},
		"negative":   {durationpb.New(-time.Hour), 2},
		"0":          {durationpb.New(0), 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			s := counting(&calls, func(int64) error {
				s, _ := status.New(codes.ResourceExhausted, "no").WithDetails(&errdetails.RetryInfo{RetryDelay: c.delay})
				return s.Err()
			})
			client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Retries: 1}))
			defer end()
			start := time.Now()
			wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
			if calls.Load() != c.calls || time.Since(start) != 0 {
				t.Errorf("%s: %d calls in %v, want %d at once", name, calls.Load(), time.Since(start), c.calls)
			}
		})
	}
}

// A call that can't be sent again in time, because of the pace, has the refusal for its answer.
func TestARetryThatThePaceHasNoTimeFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(int64) error { return refusedFor(codes.ResourceExhausted, time.Second) })
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1h burst=1"), Retries: 3}))
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := empty(ctx, client)
		if wantCode(t, err, codes.ResourceExhausted); status.Convert(err).Message() != "no" || calls.Load() != 1 {
			t.Errorf("the error is %v after %d calls, want the server's, after one", err, calls.Load())
		}
	})
}

// What a Cost panics with goes on, and the call is not taken for one that is under way.
func TestACallThatPanicsIsNotUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(n int64) error {
			if n == 1 {
				return refusedFor(codes.ResourceExhausted, time.Second)
			}
			return nil
		})
		panics := false
		cost := func(context.Context, string, any) int64 {
			if panics {
				panic("!")
			}
			return 1
		}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "100/1s", weir.WithName("pace")), Cost: cost}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
		panics = true
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic does not go on")
				}
			}()
			_ = empty(t.Context(), client)
		}()
		panics = false
		start := time.Now()
		wantCode(t, empty(t.Context(), client), codes.OK)
		if took := time.Since(start); took > 0 {
			t.Errorf("the next call waited for %v, want it not to", took)
		}
	})
}
