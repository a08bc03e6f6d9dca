package grpclimit_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// wantFields fails unless the metadata has each field once, with what stands there.
func wantFields(t *testing.T, md metadata.MD, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := md.Get(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s is %q, want %q once", name, got, value)
		}
	}
}

// Pitfall H5: the client of stacked interceptors gets one set of fields, each once, and of a name that both have what leaves less.
func TestH5StackedInterceptors(t *testing.T) {
	fields := header.Draft11 | header.XRateLimit
	stack := func(t *testing.T) []*grpclimit.Server {
		return []*grpclimit.Server{
			server(t, limiter(t, "100/1h"), grpclimit.Options{Name: "calls", Headers: fields}),
			server(t, limiter(t, "2/1h"), grpclimit.Options{Name: "few", Headers: fields}),
			server(t, limiter(t, "50/1h"), grpclimit.Options{Name: "calls", Headers: fields}),
		}
	}
	check := func(t *testing.T, md metadata.MD, calls, few, least string) {
		t.Helper()
		for _, name := range []string{"ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} {
			if got := md.Get(name); len(got) != 1 {
				t.Fatalf("%s is %q, want one", name, got)
			}
		}
		h := map[string][]string{}
		for name, values := range lowered(md) {
			h[name] = values
		}
		left := map[string]string{}
		for _, s := range header.Read(h, now()).Limits {
			left[s.Name] = itoa(s.Remaining)
		}
		if len(left) != 2 || left["calls"] != calls || left["few"] != few {
			t.Errorf("what is left is %v of %v, want %s of calls and %s of few", left, md, calls, few)
		}
		wantFields(t, md, map[string]string{"x-ratelimit-limit": "2", "x-ratelimit-remaining": least})
	}
	t.Run("unary", func(t *testing.T) {
		client := serve(t, &service{}, stack(t)...)
		for _, left := range []string{"1", "0"} {
			var md metadata.MD
			wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
			check(t, md, map[string]string{"1": "49", "0": "48"}[left], left, left)
		}
		var md metadata.MD
		wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.ResourceExhausted)
		check(t, md, "97", "0", "0") // the innermost was not asked
	})
	t.Run("stream", func(t *testing.T) {
		client := serve(t, &service{}, stack(t)...)
		s, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		md, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		check(t, md, "49", "1", "1")
	})
	t.Run("a handler that sends its header", func(t *testing.T) {
		send := func(ctx context.Context) error { return grpc.SendHeader(ctx, metadata.Pairs("mine", "1")) }
		client := serve(t, &service{empty: send}, stack(t)...)
		var md metadata.MD
		wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
		check(t, md, "49", "1", "1")
		wantFields(t, md, map[string]string{"mine": "1"})
	})
	t.Run("a stream's handler that sends its header", func(t *testing.T) {
		send := func(s pb.TestService_StreamingOutputCallServer) error {
			if err := s.SendHeader(metadata.Pairs("mine", "1")); err != nil {
				return err
			}
			return grpc.SetHeader(s.Context(), metadata.Pairs("late", "1"))
		}
		client := serve(t, &service{output: send}, stack(t)...)
		s, err := client.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		md, err := s.Header()
		if err != nil {
			t.Fatal(err)
		}
		check(t, md, "49", "1", "1")
		wantFields(t, md, map[string]string{"mine": "1"})
	})
	t.Run("another interceptor between, that sets the header", func(t *testing.T) {
		servers := stack(t)
		between := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			_ = grpc.SetHeader(ctx, metadata.Pairs("mine", "1"))
			return next(ctx, r)
		}
		client := pb.NewTestServiceClient(dial(t, listen(t, &service{}, grpc.ChainUnaryInterceptor(servers[0].Unary, between, servers[1].Unary, servers[2].Unary))))
		var md metadata.MD
		wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
		names := map[string]int{}
		for _, s := range header.Read(lowered(md), now()).Limits {
			names[s.Name]++
		}
		if len(names) != 2 || names["calls"] != 1 || names["few"] != 1 || len(md.Get("x-ratelimit-remaining")) != 1 || len(md.Get("mine")) != 1 {
			t.Errorf("the header is %v, want each limit once", md)
		}
	})
}

// A handler's context has gRPC's stream as it is, which SetSendCompressor needs.
func TestHandlersCanChooseACompressor(t *testing.T) {
	compress := func(ctx context.Context) error { return grpc.SetSendCompressor(ctx, gzip.Name) }
	client := serve(t, &service{empty: compress}, server(t, limiter(t, "1/1h"), grpclimit.Options{Headers: header.Draft11}))
	wantCode(t, empty(t.Context(), client), codes.OK)
}

func TestHeadersOfARefusalAndOfNone(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{Name: "calls", Headers: header.Draft11}))
	for _, code := range []codes.Code{codes.OK, codes.ResourceExhausted} {
		var md metadata.MD
		wantCode(t, empty(t.Context(), client, grpc.Header(&md)), code)
		wantFields(t, md, map[string]string{"ratelimit-policy": `"calls";q=1;w=3600`})
		if s := header.Read(lowered(md), now()).Limits; len(s) != 1 || s[0].Remaining != 0 || s[0].Within == 0 {
			t.Errorf("the limits are %v, want nothing left for a while", s)
		}
	}
	silent := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{Headers: header.None}))
	var md metadata.MD
	wantCode(t, empty(t.Context(), silent, grpc.Header(&md)), codes.OK)
	if len(md.Get("ratelimit")) != 0 {
		t.Errorf("the header is %v, want nothing of limits", md)
	}
}
