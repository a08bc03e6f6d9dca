package grpclimit_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

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

const stackedFields = header.Draft11 | header.XRateLimit

// stack is three Servers, of which the first and the last have limits of one name.
func stack(t *testing.T) []*grpclimit.Server {
	t.Helper()
	return []*grpclimit.Server{
		server(t, limiter(t, "100/1h"), grpclimit.Options{Name: "calls", Headers: stackedFields}),
		server(t, limiter(t, "2/1h"), grpclimit.Options{Name: "few", Headers: stackedFields}),
		server(t, limiter(t, "50/1h"), grpclimit.Options{Name: "calls", Headers: stackedFields}),
	}
}

// wantLeft fails unless the metadata has each field once, and so much is left of calls and few, which has least.
func wantLeft(t *testing.T, md metadata.MD, calls, few int64) {
	t.Helper()
	for _, name := range []string{"ratelimit", "ratelimit-policy", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"} {
		if got := md.Get(name); len(got) != 1 {
			t.Fatalf("%s is %q, want one", name, got)
		}
	}
	left := map[string]int64{}
	for _, s := range header.Read(lowered(md), time.Now()).Limits {
		left[s.Name] = s.Remaining
	}
	if len(left) != 2 || left["calls"] != calls || left["few"] != few {
		t.Errorf("what is left is %v of %v, want %d of calls and %d of few", left, md, calls, few)
	}
	wantFields(t, md, map[string]string{"x-ratelimit-limit": "2", "x-ratelimit-remaining": strconv.FormatInt(few, 10)})
}

// Pitfall H5: the client of stacked interceptors gets one set of fields, each once, and of a name that both have what leaves less.
func TestH5StackedUnary(t *testing.T) {
	client := serve(t, &service{}, stack(t)...)
	for left := range int64(2) {
		var md metadata.MD
		wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
		wantLeft(t, md, 49-left, 1-left)
	}
	var md metadata.MD
	wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.ResourceExhausted)
	wantLeft(t, md, 97, 0) // the innermost was not asked
}

// Pitfall H5, of streams.
func TestH5StackedStream(t *testing.T) {
	head := func(s *service) metadata.MD {
		stream, err := serve(t, s, stack(t)...).StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{})
		if err != nil {
			t.Fatal(err)
		}
		md, err := stream.Header()
		if err != nil {
			t.Fatal(err)
		}
		return md
	}
	wantLeft(t, head(&service{}), 49, 1)
	md := head(&service{output: func(s pb.TestService_StreamingOutputCallServer) error {
		return s.SendHeader(metadata.Pairs("mine", "1"))
	}})
	wantLeft(t, md, 49, 1)
	wantFields(t, md, map[string]string{"mine": "1"})
	md = head(&service{output: func(s pb.TestService_StreamingOutputCallServer) error {
		return grpc.SendHeader(s.Context(), metadata.Pairs("mine", "1"))
	}})
	wantLeft(t, md, 49, 1)
	wantFields(t, md, map[string]string{"mine": "1"})
}

// Pitfall H5, where the handler sends its header itself.
func TestH5StackedAndTheHandlerSendsItsHeader(t *testing.T) {
	send := func(ctx context.Context) error { return grpc.SendHeader(ctx, metadata.Pairs("mine", "1")) }
	client := serve(t, &service{empty: send}, stack(t)...)
	var md metadata.MD
	wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
	wantLeft(t, md, 49, 1)
	wantFields(t, md, map[string]string{"mine": "1"})
}

// Pitfall H5, where another interceptor sets the header in between: each limit is told once, of one name the outer one.
func TestH5StackedWithAnotherBetween(t *testing.T) {
	between := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("mine", "1"))
		return next(ctx, r)
	}
	s := stack(t)
	client := pb.NewTestServiceClient(dial(t, listen(t, &service{}, grpc.ChainUnaryInterceptor(s[0].Unary, between, s[1].Unary, s[2].Unary))))
	var md metadata.MD
	wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
	text := strings.Join(md.Get("ratelimit"), ", ")
	if strings.Count(text, `"calls";`) != 1 || strings.Count(text, `"few";r=1`) != 1 || len(md.Get("x-ratelimit-remaining")) != 1 || len(md.Get("mine")) != 1 {
		t.Errorf("the header is %v, want each limit once", md)
	}
}

// What is added to a header that is set already is of the formats of who adds it.
func TestH5StackedWithAnotherBetweenAndOtherFormats(t *testing.T) {
	between := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("mine", "1"))
		return next(ctx, r)
	}
	outer := server(t, limiter(t, "9/1h"), grpclimit.Options{Name: "outer", Headers: header.XRateLimit})
	inner := server(t, limiter(t, "5/1h"), grpclimit.Options{Name: "inner", Headers: header.XRateLimit})
	client := pb.NewTestServiceClient(dial(t, listen(t, &service{}, grpc.ChainUnaryInterceptor(outer.Unary, between, inner.Unary))))
	var md metadata.MD
	wantCode(t, empty(t.Context(), client, grpc.Header(&md)), codes.OK)
	if len(md.Get("ratelimit")) != 0 || len(md.Get("ratelimit-policy")) != 0 || len(md.Get("x-ratelimit-limit")) != 1 {
		t.Errorf("the header is %v, want one set of X-RateLimit-* and no other fields", md)
	}
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
		if s := header.Read(lowered(md), time.Now()).Limits; len(s) != 1 || s[0].Remaining != 0 || s[0].Within == 0 {
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
