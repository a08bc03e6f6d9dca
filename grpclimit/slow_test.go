package grpclimit_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
)

// An idleStream is a stream without messages.
type idleStream struct{ grpc.ServerStream }

func (idleStream) Context() context.Context {
	return peer.NewContext(context.Background(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 7}})
}

func (idleStream) SetTrailer(metadata.MD) {}

// A client with streams of any length gets the count of failures in an hour, and not the count in
// each Hold.
func TestSlowStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, limiter(t, "fixed-window 5/1h", weir.WithName("logins")), grpclimit.Options{Charge: grpclimit.Failures, Hold: time.Second})
		var wg sync.WaitGroup
		var failed, refused atomic.Int64
		for range 1700 { // 28 minutes of one window
			wg.Go(func() {
				err := s.Stream(nil, idleStream{}, &grpc.StreamServerInfo{FullMethod: "/service/Login"}, func(any, grpc.ServerStream) error {
					time.Sleep(20 * time.Second)
					failed.Add(1)
					return status.Error(codes.Unauthenticated, "no")
				})
				if status.Code(err) == codes.ResourceExhausted {
					refused.Add(1)
				}
			})
			time.Sleep(time.Second)
		}
		wg.Wait()
		if failed.Load() != 5 || refused.Load() != 1695 {
			t.Errorf("%d streams failed within an hour and %d were refused, want 5 and 1695", failed.Load(), refused.Load())
		}
	})
}
