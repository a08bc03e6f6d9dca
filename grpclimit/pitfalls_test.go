package grpclimit_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/store"
)

// lowered makes header fields of metadata.
func lowered(md metadata.MD) http.Header {
	h := http.Header{}
	for name, values := range md {
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// A brokenStore decides nothing, and says why in words that are for nobody else.
type brokenStore struct{}

func (s brokenStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (brokenStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("dial tcp 10.1.2.3:6379: internal")
}

// Pitfall H1: the wait that a refusal tells is enough, and no longer than it must be.
func TestH1TheRetryDelayIsExact(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := limiter(t, "3/10s burst=1", weir.WithClock(func() time.Time { return at }))
	client := serve(t, &service{}, server(t, l, grpclimit.Options{}))
	wantCode(t, empty(t.Context(), client), codes.OK)
	var trailer metadata.MD
	err := empty(t.Context(), client, grpc.Trailer(&trailer))
	wantCode(t, err, codes.ResourceExhausted)
	delay := detail[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration()
	if delay != 3333333334*time.Nanosecond {
		t.Errorf("retry_delay is %v, want 10 s / 3, rounded up to a nanosecond", delay)
	}
	wantFields(t, trailer, map[string]string{"grpc-retry-pushback-ms": "3334"})
	at = at.Add(delay - 1)
	wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
	at = at.Add(1)
	wantCode(t, empty(t.Context(), client), codes.OK)
}

// The retries that are built into gRPC come after the delay of the denial, not after their own
// backoff of an hour.
func TestRetriesOfGRPCWait(t *testing.T) {
	const interval = 50 * time.Millisecond
	var calls, now atomic.Int64
	clock := func() time.Time { return time.Unix(1_700_000_000, now.Load()) }
	count := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		calls.Add(1)
		reply, err := next(ctx, r)
		if err != nil { // the next attempt comes when a unit is back
			now.Add(int64(interval))
		}
		return reply, err
	}
	s := server(t, limiter(t, "20/1s burst=1", weir.WithClock(clock)), grpclimit.Options{})
	target := listen(t, &service{}, grpc.ChainUnaryInterceptor(count, s.Unary))
	client := pb.NewTestServiceClient(dial(t, target, grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "3600s", "maxBackoff": "3600s", "backoffMultiplier": 1, "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}}]}`)))
	for range 3 {
		wantCode(t, empty(t.Context(), client), codes.OK)
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls arrived, want 5, of which 2 are retries", n)
	}
}

// Pitfall H3: what a call's metadata says of its client's address counts if a proxy says it, read from its end.
func TestH3ForwardedForInMetadata(t *testing.T) {
	call := func(client pb.TestServiceClient, values ...string) error {
		md := metadata.MD{"x-forwarded-for": values}
		return empty(metadata.NewOutgoingContext(t.Context(), md), client)
	}
	behind, err := identity.Behind("X-Forwarded-For", "127.0.0.0/8", "192.0.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	trusting := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{ClientIP: behind}))
	wantCode(t, call(trusting, "198.51.100.1"), codes.OK)
	wantCode(t, call(trusting, "198.51.100.2", "192.0.2.7"), codes.OK)
	wantCode(t, call(trusting, "203.0.113.9, 198.51.100.1", "192.0.2.7"), codes.ResourceExhausted)
	wantCode(t, call(trusting, "198.51.100.2"), codes.ResourceExhausted)

	other := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{}))
	wantCode(t, call(other, "198.51.100.1"), codes.OK)
	wantCode(t, call(other, "198.51.100.2"), codes.ResourceExhausted)
}

// Pitfall H4: the peers of a Unix socket have no address, and are counted, as one; a proxy among them can say whose call it is.
func TestH4UnixSockets(t *testing.T) {
	onSocket := func(t *testing.T, opts grpclimit.Options) pb.TestServiceClient {
		t.Helper()
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		gs := grpc.NewServer(chain(server(t, limiter(t, "1/1h"), opts))...)
		pb.RegisterTestServiceServer(gs, &service{})
		go gs.Serve(l)
		t.Cleanup(gs.Stop)
		return pb.NewTestServiceClient(dial(t, "unix:"+path))
	}
	client := onSocket(t, grpclimit.Options{})
	wantCode(t, empty(t.Context(), client), codes.OK)
	wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)

	behind, err := identity.Behind("X-Forwarded-For", "unix")
	if err != nil {
		t.Fatal(err)
	}
	client = onSocket(t, grpclimit.Options{ClientIP: behind})
	for _, ip := range []string{"198.51.100.1", "198.51.100.2"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", ip)
		wantCode(t, empty(ctx, client), codes.OK)
		wantCode(t, empty(ctx, client), codes.ResourceExhausted)
	}
}

// Pitfall H4: a peer of a Unix socket that is bound to a file called like an address has none, and is no proxy.
func TestH4NamesOfUnixSocketsAreNoAddresses(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "server")
	if err != nil {
		t.Fatal(err)
	}
	behind, err := identity.Behind("X-Forwarded-For", "10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	gs := grpc.NewServer(chain(server(t, limiter(t, "1/1h"), grpclimit.Options{ClientIP: behind}))...)
	pb.RegisterTestServiceServer(gs, &service{})
	go gs.Serve(l)
	t.Cleanup(gs.Stop)
	want := codes.OK
	for _, name := range []string{"192.0.2.1", "192.0.2.2", "10.0.0.7", "10.0.0.8:80"} {
		conn := dial(t, "passthrough:server", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.UnixAddr{Net: "unix", Name: name}}).DialContext(ctx, "unix", "server")
		}))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", "198.51.100.1")
		wantCode(t, empty(ctx, pb.NewTestServiceClient(conn)), want)
		want = codes.ResourceExhausted // all of them are one
	}
}

// Pitfall H4, where the peer's address is nothing at all, as some systems have it.
func TestH4APeerWithoutAnAddress(t *testing.T) {
	behind, err := identity.Behind("X-Forwarded-For", "unix")
	if err != nil {
		t.Fatal(err)
	}
	s := server(t, limiter(t, "1/1h"), grpclimit.Options{ClientIP: behind})
	call := func(p *peer.Peer, ip string) error {
		ctx := metadata.NewIncomingContext(peer.NewContext(t.Context(), p), metadata.Pairs("x-forwarded-for", ip))
		_, err := s.Unary(ctx, &pb.Empty{}, &grpc.UnaryServerInfo{FullMethod: emptyCall}, func(context.Context, any) (any, error) { return &pb.Empty{}, nil })
		return err
	}
	socket := &peer.Peer{Addr: &net.UnixAddr{Net: "unix"}, LocalAddr: &net.UnixAddr{Net: "unix", Name: "/run/s"}}
	wantCode(t, call(socket, "198.51.100.1"), codes.OK)
	wantCode(t, call(socket, "198.51.100.2"), codes.OK)
	wantCode(t, call(&peer.Peer{}, "198.51.100.3"), codes.OK)
	wantCode(t, call(&peer.Peer{}, "198.51.100.4"), codes.ResourceExhausted) // it is no proxy
	named := &peer.Peer{Addr: &net.UnixAddr{Net: "unix", Name: "192.0.2.1"}}
	wantCode(t, call(named, "198.51.100.5"), codes.OK)
	wantCode(t, call(named, "198.51.100.6"), codes.OK)
}

// Pitfall H6: when the store can't decide, what happens is what the options say, and nobody is told why.
func TestH6TheStoreFails(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	broken := func(t *testing.T, o store.OnError) pb.TestServiceClient {
		l := limiter(t, "2/1h", weir.WithStore(brokenStore{}))
		return serve(t, &service{}, server(t, l, grpclimit.Options{OnStoreError: o, Log: quiet, Headers: header.Draft11}))
	}
	t.Run("deny", func(t *testing.T) {
		var trailer, head metadata.MD
		err := empty(t.Context(), broken(t, store.Deny), grpc.Trailer(&trailer), grpc.Header(&head))
		wantCode(t, err, codes.Unavailable)
		if d := detail[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration(); d != time.Second {
			t.Errorf("retry_delay is %v, want 1 s", d)
		}
		wantFields(t, trailer, map[string]string{"grpc-retry-pushback-ms": "1000"})
		if text := everything(err, head, trailer); strings.Contains(text, "10.1.2.3") || strings.Contains(text, "internal") {
			t.Errorf("the client is told %s", text)
		}
	})
	t.Run("allow", func(t *testing.T) {
		client := broken(t, store.Allow)
		for range 5 {
			wantCode(t, empty(t.Context(), client), codes.OK)
		}
	})
	t.Run("local", func(t *testing.T) {
		client := broken(t, store.Local)
		for _, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
			wantCode(t, empty(t.Context(), client), want)
		}
	})
}

// everything is all that a client gets.
func everything(err error, mds ...metadata.MD) string {
	text := status.Convert(err).Proto().String()
	for _, md := range mds {
		for name, values := range md {
			text += "\n" + name + ": " + strings.Join(values, ", ")
		}
	}
	return text
}

// Pitfall H7: nothing that a client says comes back to it.
func TestH7NoReflection(t *testing.T) {
	key := identity.Key{identity.Header("x-api-key")}
	for name, opts := range map[string]grpclimit.Options{
		"denied":    {Key: key, Headers: header.Draft11},
		"excessive": {Key: key, Headers: header.Draft11, Cost: func(context.Context, string, any) int64 { return 10 }},
		"invalid":   {Key: key, Headers: header.Draft11, Cost: func(context.Context, string, any) int64 { return -1 }},
	} {
		client := serve(t, &service{}, server(t, limiter(t, "1/1h"), opts))
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-api-key", "s3cr3t", "x-forwarded-for", "203.0.113.5")
		_ = empty(ctx, client)
		var trailer, head metadata.MD
		err := empty(ctx, client, grpc.Trailer(&trailer), grpc.Header(&head))
		if err == nil {
			t.Fatalf("%s: the call passed", name)
		}
		text := everything(err, head, trailer)
		for _, said := range []string{"s3cr3t", "203.0.113.5", "127.0.0.1", "EmptyCall"} {
			if strings.Contains(text, said) {
				t.Errorf("%s: the client is told %s", name, text)
			}
		}
	}
}

type userKey struct{}

// Pitfall H9: what an earlier interceptor has put in the context is read there, and not from metadata of that name.
func TestH9ContextValues(t *testing.T) {
	s := server(t, limiter(t, "1/1h"), grpclimit.Options{Key: identity.Key{identity.Context("user", userKey{})}})
	letIn := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		return next(context.WithValue(ctx, userKey{}, md.Get("token")[0]), r)
	}
	client := pb.NewTestServiceClient(dial(t, listen(t, &service{}, grpc.ChainUnaryInterceptor(letIn, s.Unary))))
	call := func(token, user string) error {
		return empty(metadata.AppendToOutgoingContext(t.Context(), "token", token, "user", user), client)
	}
	wantCode(t, call("a", "x"), codes.OK)
	wantCode(t, call("b", "x"), codes.OK)
	wantCode(t, call("a", "y"), codes.ResourceExhausted)
}

// Pitfall H10: who makes up tokens is counted all the same.
func TestH10TokensThatAreMadeUp(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "3/1h"), grpclimit.Options{}))
	for i := range 4 {
		want := codes.OK
		if i == 3 {
			want = codes.ResourceExhausted
		}
		wantCode(t, empty(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strconv.Itoa(i)), client), want)
	}
}
