package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir/grpclimit"
)

func TestAClientKeepsToTheMetadataOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name     string
		md       metadata.MD
		err      error
		min, max time.Duration
	}{
		{"nothing left", metadata.Pairs("ratelimit", `"hour";r=5;t=3600, "second";r=0;t=2`), nil, 2 * time.Second, 2200 * time.Millisecond},
		{"places, not a rate", metadata.Pairs("ratelimit-policy", `"open";q=5;qu="concurrent-requests"`, "ratelimit", `"open";r=0;t=2`), nil, 0, 0},
		{"malformed", metadata.Pairs("ratelimit", `"second";r=0;t=`), nil, 0, 0},
		{"Retry-After of a success", metadata.Pairs("retry-after", "7"), nil, 0, 0},
		{"Retry-After of a refusal", metadata.Pairs("retry-after", "7"), status.Error(codes.Unavailable, "no"), 7 * time.Second, 7700 * time.Millisecond},
		{"Retry-After of another failure", metadata.Pairs("retry-after", "7"), status.Error(codes.NotFound, "no"), 0, 0},
		{"RetryInfo wins", metadata.Pairs("ratelimit", `"a";r=0;t=9`), refusedFor(codes.ResourceExhausted, time.Second), time.Second, 1100 * time.Millisecond},
	} {
		for _, kind := range []string{"unary", "stream"} {
			synctest.Test(t, func(t *testing.T) {
				first := true
				answer := func(ctx context.Context) error {
					if !first {
						return nil
					}
					first = false
					_ = grpc.SetHeader(ctx, c.md)
					return c.err
				}
				s := &service{empty: answer, duplex: func(s pb.TestService_FullDuplexCallServer) error { return answer(s.Context()) }}
				client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
				defer end()
				call := func() {
					if kind == "unary" {
						_ = empty(t.Context(), client)
					} else {
						_, _ = duplex(t.Context(), t, client).Recv()
					}
				}
				call()
				start := time.Now()
				call()
				if took := time.Since(start); took < c.min || took > c.max {
					t.Errorf("%s, %s: the next call was sent after %v, want %v to %v", c.name, kind, took, c.min, c.max)
				}
			})
		}
	}
}

// What the server says while a call waits for the pace counts for that call too. If it is then not sent, it takes nothing.
func TestAServerSaysMoreInTheMeantime(t *testing.T) {
	for _, c := range []struct {
		maxWait time.Duration
		code    codes.Code
		after   time.Duration
	}{{time.Minute, codes.OK, 31 * time.Second}, {10 * time.Second, codes.ResourceExhausted, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			s := counting(&calls, func(n int64) error {
				if n > 1 {
					return nil
				}
				time.Sleep(time.Second)
				return refusedFor(codes.ResourceExhausted, 30*time.Second)
			})
			pace := limiter(t, "1/10s burst=1")
			client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: pace, MaxWait: c.maxWait}))
			defer end()
			start := time.Now()
			go func() { _ = empty(t.Context(), client) }()
			synctest.Wait()
			wantCode(t, empty(t.Context(), client), c.code)
			if took := time.Since(start); took < c.after || took > c.after+3*time.Second {
				t.Errorf("the call ended after %v, want %v", took, c.after)
			}
			d, err := pace.Peek(t.Context(), "passthrough:within")
			if left := d.Remaining; err != nil || c.code != codes.OK && left != 1 {
				t.Errorf("there is room for %d calls, want what was not sent given back", left)
			}
		})
	}
}

// A stream that ends while a message waits for the pace: Send returns io.EOF, as ever, and Recv says how it ended.
func TestAStreamEndsWhileAMessageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{duplex: func(s pb.TestService_FullDuplexCallServer) error {
			_, _ = s.Recv()
			time.Sleep(time.Second)
			return status.Error(codes.Aborted, "no more")
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{Limiter: limiter(t, "1/1h burst=1"), PerMessage: true}))
		defer end()
		stream := duplex(t.Context(), t, client)
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			t.Fatal(err)
		}
		received := make(chan error, 1)
		go func() {
			_, err := stream.Recv()
			received <- err
		}()
		start := time.Now()
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); !errors.Is(err, io.EOF) {
			t.Errorf("Send returns %v, want io.EOF", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("Send returned after %v, want 1 s", took)
		}
		wantCode(t, <-received, codes.Aborted)
	})
}
