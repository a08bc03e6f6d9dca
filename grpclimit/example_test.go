package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// start serves a service behind interceptors, and returns a client of it, and what stops both.
func start(service pb.TestServiceServer, server []grpc.ServerOption, client ...grpc.DialOption) (pb.TestServiceClient, func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer(server...)
	pb.RegisterTestServiceServer(s, service)
	go func() { _ = s.Serve(l) }()
	cc, err := grpc.NewClient(l.Addr().String(), append(client, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		log.Fatal(err)
	}
	return pb.NewTestServiceClient(cc), func() {
		_ = cc.Close()
		s.Stop()
	}
}

// Two calls an hour for each client, by its address.
func ExampleNewServer() {
	limiter, err := weir.New(weir.MustParseLimit("2/1h"))
	if err != nil {
		log.Fatal(err)
	}
	limits, err := grpclimit.NewServer(limiter, grpclimit.Options{Name: "calls"})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := start(&service{}, []grpc.ServerOption{grpc.UnaryInterceptor(limits.Unary), grpc.StreamInterceptor(limits.Stream)})
	defer stop()

	for range 3 {
		_, err := client.EmptyCall(context.Background(), &pb.Empty{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			switch d := detail.(type) {
			case *errdetails.RetryInfo:
				fmt.Println("again in", d.GetRetryDelay().AsDuration().Round(time.Minute))
			case *errdetails.QuotaFailure:
				fmt.Println("denied by", d.GetViolations()[0].GetSubject())
			}
		}
	}
	// Output:
	// OK
	// OK
	// ResourceExhausted
	// again in 30m0s
	// denied by calls
}

// Policies match calls by their method, which is the path, and by their metadata.
func ExampleNewServer_policies() {
	config, err := policy.Parse([]byte(`
policies:
  - name: heavy
    match: {path: /grpc.testing.TestService/UnaryCall}
    key: ["hash:header:x-api-key"]
    limits: [1/1h]
  - name: address # bounds a client that makes up keys
    key: [client_ip]
    limits: [100/1m]
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	limits, err := grpclimit.NewServer(set, grpclimit.Options{Headers: header.Draft11})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := start(&service{}, []grpc.ServerOption{grpc.UnaryInterceptor(limits.Unary)})
	defer stop()

	for _, key := range []string{"a", "a", "b"} {
		var md metadata.MD
		ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", key)
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Header(&md))
		fmt.Println(key, status.Code(err), md.Get("ratelimit-policy"))
	}
	_, err = client.EmptyCall(context.Background(), &pb.Empty{})
	fmt.Println(status.Code(err))
	// Output:
	// a OK ["heavy";q=1;w=3600, "address";q=100;w=60]
	// a ResourceExhausted ["heavy";q=1;w=3600, "address";q=100;w=60]
	// b OK ["heavy";q=1;w=3600, "address";q=100;w=60]
	// OK
}

// Which limits a method has can be decided in the program too.
func ExampleServer_Unary() {
	strict, err := weir.New(weir.MustParseLimit("1/1h"))
	if err != nil {
		log.Fatal(err)
	}
	logins, err := grpclimit.NewServer(strict, grpclimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	choose := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if info.FullMethod == unaryCall {
			return logins.Unary(ctx, request, info, handler)
		}
		return handler(ctx, request)
	}
	client, stop := start(&service{}, []grpc.ServerOption{grpc.UnaryInterceptor(choose)})
	defer stop()

	for range 2 {
		_, login := client.UnaryCall(context.Background(), &pb.SimpleRequest{})
		_, other := client.EmptyCall(context.Background(), &pb.Empty{})
		fmt.Println(status.Code(login), status.Code(other))
	}
	// Output:
	// OK OK
	// ResourceExhausted OK
}

// Messages of streams are counted, and wait for up to a second rather than end the stream.
func ExampleServer_Stream() {
	limiter, err := weir.New(weir.MustParseLimit("100/1s burst=3"))
	if err != nil {
		log.Fatal(err)
	}
	messages, err := grpclimit.NewServer(limiter, grpclimit.Options{PerMessage: true, MaxWait: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	sending := func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if info.IsClientStream { // of others the client sends one message
			return messages.Stream(server, stream, info, handler)
		}
		return handler(server, stream)
	}
	client, stop := start(&service{}, []grpc.ServerOption{grpc.StreamInterceptor(sending)})
	defer stop()

	stream, err := client.FullDuplexCall(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 10 {
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			fmt.Println(err)
			return
		}
		if _, err := stream.Recv(); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("10 messages")
	// Output: 10 messages
}

// A login costs when it fails, and so guessing passwords does; a download when it does not.
func ExampleFailures() {
	limiter, err := weir.New(weir.MustParseLimit("2/1h"), weir.WithName("logins"))
	if err != nil {
		log.Fatal(err)
	}
	limits, err := grpclimit.NewServer(limiter, grpclimit.Options{
		Key: identity.Key{identity.Header("x-user")},
		Charge: func(ctx context.Context, method string, a grpclimit.Answer) int64 {
			if method == emptyCall {
				return grpclimit.Failures(ctx, method, a)
			}
			return grpclimit.Successes(ctx, method, a)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	wrong := func(context.Context) error { return status.Error(codes.Unauthenticated, "wrong password") }
	client, stop := start(&service{empty: wrong}, []grpc.ServerOption{grpc.UnaryInterceptor(limits.Unary)})
	defer stop()

	for range 3 {
		_, err := client.EmptyCall(metadata.AppendToOutgoingContext(context.Background(), "x-user", "bob"), &pb.Empty{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// Unauthenticated
	// Unauthenticated
	// ResourceExhausted
}

// A client that waits for as long as it is told to, and then sends the call again.
func ExampleNewClient() {
	limiter, err := weir.New(weir.MustParseLimit("20/1s burst=2"))
	if err != nil {
		log.Fatal(err)
	}
	limits, err := grpclimit.NewServer(limiter, grpclimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	patient, err := grpclimit.NewClient(grpclimit.ClientOptions{Retries: 3})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := start(&service{}, []grpc.ServerOption{grpc.UnaryInterceptor(limits.Unary)},
		grpc.WithUnaryInterceptor(patient.Unary), grpc.WithStreamInterceptor(patient.Stream))
	defer stop()

	for range 5 {
		_, err := client.EmptyCall(context.Background(), &pb.Empty{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// OK
	// OK
	// OK
	// OK
}

// A client with a pace of its own. What could not be sent before its deadline is not sent.
func ExampleClient_Unary() {
	pace, err := weir.New(weir.MustParseLimit("1/1h"))
	if err != nil {
		log.Fatal(err)
	}
	paced, err := grpclimit.NewClient(grpclimit.ClientOptions{Limiter: pace})
	if err != nil {
		log.Fatal(err)
	}
	client, stop := start(&service{}, nil, grpc.WithUnaryInterceptor(paced.Unary), grpc.WithStreamInterceptor(paced.Stream))
	defer stop()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 2 {
		_, err := client.EmptyCall(ctx, &pb.Empty{})
		fmt.Println(status.Code(err))
	}
	// Output:
	// OK
	// DeadlineExceeded
}
