package grpclimit_test

import (
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir/grpclimit"
)

// The zero Server has no limits, and refuses all calls.
func TestServerWithoutLimits(t *testing.T) {
	client := serve(t, &service{}, &grpclimit.Server{})
	if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); status.Code(err) != codes.Unavailable {
		t.Errorf("unary: %v", err)
	}
	stream, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("stream: %v", err)
	}
}
