// Package grpclimit limits gRPC calls: interceptors for servers, and for clients that pace themselves.
package grpclimit

import (
	"context"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir/admission"
)

// UnaryServerInterceptor is a stub.
func UnaryServerInterceptor(g *admission.Gate) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		s, err := status.New(codes.ResourceExhausted, "").WithDetails(&errdetails.RetryInfo{})
		if err != nil {
			return nil, err
		}
		return nil, s.Err()
	}
}
