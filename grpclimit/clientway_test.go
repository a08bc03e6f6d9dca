package grpclimit_test

import (
	"context"
	"sync"
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

// A message that is too large is RESOURCE_EXHAUSTED too, and no word of a limit: others need not go one by one.
func TestARefusalThatIsOfNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := counting(&calls, func(n int64) error {
			if n == 1 {
				return status.Error(codes.ResourceExhausted, "a message that is too large")
			}
			time.Sleep(time.Second)
			return nil
		})
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
		defer end()
		wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
		start := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { wantCode(t, empty(t.Context(), client), codes.OK) })
		}
		all.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("3 calls of a second took %v, want them at once", took)
		}
	})
}

// A stream of which nothing is received counts among those that are under way for two seconds only.
func TestAStreamThatOnlySendsIsNotUnderWayForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		s := &service{duplex: func(both pb.TestService_FullDuplexCallServer) error {
			if begun.Add(1) == 1 {
				return both.SendHeader(metadata.Pairs("ratelimit", `"a";r=1;t=600`))
			}
			<-both.Context().Done()
			return nil
		}}
		client, end := within(t, s, newClient(t, grpclimit.ClientOptions{}))
		defer end()
		_, _ = duplex(t.Context(), t, client).Recv()
		_ = duplex(t.Context(), t, client) // the one that is left
		start := time.Now()
		_ = duplex(t.Context(), t, client)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the next stream began after %v, want 2 s", took)
		}
	})
}

// What is called panics: the call is not taken for one that is under way, before which no other may go.
func TestACallThatPanicsHoldsNobodyBack(t *testing.T) {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	for name, call := range map[string]func(t *testing.T, c *grpclimit.Client, cc *grpc.ClientConn, answer func() error) error{
		"unary": func(t *testing.T, c *grpclimit.Client, cc *grpc.ClientConn, answer func() error) error {
			t.Helper()
			return c.Unary(t.Context(), emptyCall, nil, nil, cc, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return answer() })
		},
		"stream": func(t *testing.T, c *grpclimit.Client, cc *grpc.ClientConn, answer func() error) error {
			t.Helper()
			_, err := c.Stream(t.Context(), desc, cc, emptyCall, func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return nil, answer()
			})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, cc := newClient(t, grpclimit.ClientOptions{}), dial(t, "passthrough:nobody")
			wantCode(t, call(t, c, cc, func() error { return refusedFor(codes.ResourceExhausted, time.Second) }), codes.ResourceExhausted)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: the panic does not go on", name)
					}
				}()
				_ = call(t, c, cc, func() error { panic("!") })
			}()
			start := time.Now()
			wantCode(t, call(t, c, cc, func() error { return status.Error(codes.NotFound, "no") }), codes.NotFound)
			if took := time.Since(start); took != 0 {
				t.Errorf("%s: the next call waited for %v, want it not to", name, took)
			}
		})
	}
}
