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

// working is a service that works on each message for so long.
func working(length time.Duration) *service {
	return &service{duplex: func(both pb.TestService_FullDuplexCallServer) error {
		for {
			if _, err := both.Recv(); err != nil {
				return err
			}
			select {
			case <-time.After(length):
			case <-both.Context().Done():
				return both.Context().Err()
			}
			if err := both.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
	}}
}

// A message waits for a place of a concurrent limit for as long as MaxWait allows, and has it soon after it is free.
func TestAMessageWaitsForAPlace(t *testing.T) {
	const document = "policies: [{name: busy, key: all, limits: [concurrent 1 lease=30s, 1000/1s]}]"
	for _, c := range []struct {
		work, atLeast, atMost time.Duration
		want                  codes.Code
	}{
		{30 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond, codes.OK},
		{2 * time.Second, 4 * time.Second, 5 * time.Second, codes.OK},
		{5 * time.Second, 3 * time.Second, 3 * time.Second, codes.ResourceExhausted},
	} {
		for _, name := range []string{"limiter", "policies"} {
			synctest.Test(t, func(t *testing.T) {
				opts := grpclimit.Options{PerMessage: true, MaxWait: 3 * time.Second}
				var s *grpclimit.Server
				if name == "limiter" {
					s = server(t, limiter(t, "concurrent 1 lease=30s"), opts)
				} else {
					s = server(t, policies(t, document), opts)
				}
				client, end := within(t, working(c.work), nil, chain(s)...)
				defer end()
				start := time.Now()
				first, second := duplex(t.Context(), t, client), duplex(t.Context(), t, client)
				wantCode(t, first.Send(&pb.StreamingOutputCallRequest{}), codes.OK)
				synctest.Wait()
				wantCode(t, pingPong(second), c.want)
				if took := time.Since(start); took < c.atLeast || took > c.atMost {
					t.Errorf("%s, %v of work: the answer came after %v, want %v to %v", name, c.work, took, c.atLeast, c.atMost)
				}
			})
		}
	}
}

// Pitfall W3: when the limit is raised, a message that waits goes within a second.
func TestW3AMessageWaitsAndTheLimitIsRaised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter(t, "1/1h burst=1", weir.WithName("messages"))
		client, end := within(t, &service{}, nil, chain(server(t, l, grpclimit.Options{PerMessage: true, MaxWait: 2 * time.Hour}))...)
		defer end()
		stream := duplex(t.Context(), t, client)
		wantCode(t, pingPong(stream), codes.OK)
		start := time.Now()
		time.AfterFunc(10*time.Minute, func() {
			if err := l.SetLimit(weir.MustParseLimit("1000/1s")); err != nil {
				t.Error(err)
			}
		})
		wantCode(t, pingPong(stream), codes.OK)
		if took := time.Since(start); took < 10*time.Minute || took > 10*time.Minute+time.Second {
			t.Errorf("the message was received after %v, want 10 minutes and at most a second", took)
		}
	})
}

// A client that goes while its message waits is not refused: it is gone.
func TestAClientGoesWhileItsMessageWaits(t *testing.T) {
	for _, limit := range []string{"1/1h burst=1", "concurrent 1 lease=1h"} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 2)
			s := &service{duplex: func(both pb.TestService_FullDuplexCallServer) error {
				_, err := both.Recv()
				if err == nil {
					<-both.Context().Done()
					return nil
				}
				ended <- err
				return err
			}}
			client, end := within(t, s, nil, chain(server(t, limiter(t, limit), grpclimit.Options{PerMessage: true, MaxWait: 2 * time.Hour}))...)
			defer end()
			wantCode(t, duplex(t.Context(), t, client).Send(&pb.StreamingOutputCallRequest{}), codes.OK)
			synctest.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			wantCode(t, duplex(ctx, t, client).Send(&pb.StreamingOutputCallRequest{}), codes.OK)
			time.Sleep(time.Minute)
			cancel()
			wantCode(t, <-ended, codes.Canceled)
		})
	}
}

// The retries that are built into gRPC are told when to come back by refusals of streams and of messages too.
func TestPushbackOfStreams(t *testing.T) {
	for name, opts := range map[string]grpclimit.Options{"streams": {}, "messages": {PerMessage: true}} {
		client := serve(t, &service{}, server(t, limiter(t, "1/30s burst=1"), opts))
		wantCode(t, pingPong(duplex(t.Context(), t, client)), codes.OK)
		refused := duplex(t.Context(), t, client)
		wantCode(t, pingPong(refused), codes.ResourceExhausted)
		if got := refused.Trailer().Get("grpc-retry-pushback-ms"); len(got) != 1 || len(got[0]) != len("30000") {
			t.Errorf("%s: the retries of gRPC are told %q, want about half a minute", name, got)
		}
	}
}

// A stream whose handler panics has failed, and is charged for that.
func TestAStreamThatPanicsIsCharged(t *testing.T) {
	var charged atomic.Int64
	charge := func(ctx context.Context, method string, a grpclimit.Answer) int64 {
		if a.Code == codes.Internal && a.Err != nil {
			charged.Add(1)
		}
		return grpclimit.Failures(ctx, method, a)
	}
	l := limiter(t, "3/1h", weir.WithName("streams"))
	s := server(t, l, grpclimit.Options{Charge: charge})
	handler := &service{duplex: func(pb.TestService_FullDuplexCallServer) error { panic("!") }}
	client := pb.NewTestServiceClient(dial(t, listen(t, handler, grpc.ChainStreamInterceptor(recoverStream, s.Stream))))
	_, err := duplex(t.Context(), t, client).Recv()
	wantCode(t, err, codes.Internal)
	d, err := l.Peek(t.Context(), "127.0.0.1")
	if err != nil || d.Remaining != 2 || charged.Load() != 1 {
		t.Errorf("%d remain (%v), and %d were charged as failures; want 2 and 1", d.Remaining, err, charged.Load())
	}
}
