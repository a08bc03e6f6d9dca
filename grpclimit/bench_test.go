package grpclimit_test

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/identity"
)

// The interceptor over the bare handler, without what gRPC itself costs.
func bench(b *testing.B, limit string, opts grpclimit.Options) {
	b.Helper()
	l, err := weir.New(weir.MustParseLimit(limit))
	if err != nil {
		b.Fatal(err)
	}
	s, err := grpclimit.NewServer(l, opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx := peer.NewContext(b.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000}})
	ctx = metadata.NewIncomingContext(ctx, metadata.Pairs(":authority", "localhost", "content-type", "application/grpc", "user-agent", "grpc-go", "x-api-key", "abc"))
	request, info := &pb.Empty{}, &grpc.UnaryServerInfo{FullMethod: emptyCall}
	handler := func(context.Context, any) (any, error) { return request, nil }
	b.ReportAllocs()
	for b.Loop() {
		_, _ = s.Unary(ctx, request, info, handler)
	}
}

func BenchmarkAdmitted(b *testing.B) { bench(b, "1000000000/1s", grpclimit.Options{}) }
func BenchmarkDenied(b *testing.B)   { bench(b, "1/1h", grpclimit.Options{}) }
func BenchmarkByMetadata(b *testing.B) {
	bench(b, "1000000000/1s", grpclimit.Options{Key: identity.Key{identity.Header("x-api-key")}})
}
