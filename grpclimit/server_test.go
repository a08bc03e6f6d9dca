package grpclimit_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// service answers calls by functions, and has answers of its own where there is none.
type service struct {
	pb.UnimplementedTestServiceServer
	empty  func(context.Context) error
	output func(pb.TestService_StreamingOutputCallServer) error
	input  func(pb.TestService_StreamingInputCallServer) error
	duplex func(pb.TestService_FullDuplexCallServer) error
}

func (s *service) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	if s.empty != nil {
		return &pb.Empty{}, s.empty(ctx)
	}
	return &pb.Empty{}, nil
}

func (s *service) UnaryCall(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{Username: string(r.GetPayload().GetBody())}, nil
}

func (s *service) StreamingOutputCall(_ *pb.StreamingOutputCallRequest, out pb.TestService_StreamingOutputCallServer) error {
	if s.output != nil {
		return s.output(out)
	}
	for range 3 {
		if err := out.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) StreamingInputCall(in pb.TestService_StreamingInputCallServer) error {
	return s.input(in)
}

func (s *service) FullDuplexCall(both pb.TestService_FullDuplexCallServer) error {
	if s.duplex != nil {
		return s.duplex(both)
	}
	for {
		if _, err := both.Recv(); err != nil {
			return nil //nolint:nilerr // the client has ended, or is refused
		}
		if err := both.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

const (
	emptyCall = "/grpc.testing.TestService/EmptyCall"
	unaryCall = "/grpc.testing.TestService/UnaryCall"
)

// serve serves s behind the servers, the first one outermost, and returns a client.
func serve(t *testing.T, s pb.TestServiceServer, servers ...*grpclimit.Server) pb.TestServiceClient {
	t.Helper()
	return pb.NewTestServiceClient(dial(t, listen(t, s, chain(servers...)...)))
}

func chain(servers ...*grpclimit.Server) []grpc.ServerOption {
	var unary []grpc.UnaryServerInterceptor
	var stream []grpc.StreamServerInterceptor
	for _, s := range servers {
		unary, stream = append(unary, s.Unary), append(stream, s.Stream)
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...)}
}

func listen(t *testing.T, s pb.TestServiceServer, opts ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(server, s)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func dial(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

func limiter(t *testing.T, limit string, opts ...weir.Option) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(limit), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func server[L admission.Limits](t *testing.T, limits L, opts grpclimit.Options) *grpclimit.Server {
	t.Helper()
	s, err := grpclimit.NewServer(limits, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// policies makes a Set of a document.
func policies(t *testing.T, document string) *policy.Set {
	t.Helper()
	c, err := policy.Parse([]byte(document), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.New(c, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// detail returns the detail of a type that an error has, or the zero one.
func detail[D any](t *testing.T, err error) (d D) {
	t.Helper()
	for _, v := range status.Convert(err).Details() {
		if v, ok := v.(D); ok {
			return v
		}
	}
	return d
}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Fatalf("the call ended with %v, want %v", err, code)
	}
}

func TestACallIsDenied(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "2/1h"), grpclimit.Options{Name: "calls"}))
	for range 2 {
		_, err := client.EmptyCall(t.Context(), &pb.Empty{})
		wantCode(t, err, codes.OK)
	}
	var trailer, head metadata.MD
	_, err := client.EmptyCall(t.Context(), &pb.Empty{}, grpc.Trailer(&trailer), grpc.Header(&head))
	wantCode(t, err, codes.ResourceExhausted)
	delay := detail[*errdetails.RetryInfo](t, err).GetRetryDelay().AsDuration()
	if delay <= 29*time.Minute || delay > 30*time.Minute {
		t.Errorf("retry_delay is %v, want nearly 30 minutes", delay)
	}
	violations := detail[*errdetails.QuotaFailure](t, err).GetViolations()
	if len(violations) != 1 || violations[0].GetSubject() != "calls" || violations[0].GetDescription() == "" {
		t.Errorf("the violations are %v, want one of calls", violations)
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "-1" {
		t.Errorf("the retries of gRPC are told %q, want -1: a wait of half an hour is not theirs", got)
	}
	if len(head) > 0 {
		t.Errorf("the header is %v, want none: it is not asked for", head)
	}
}

func TestACallCostsMoreThanTheCapacity(t *testing.T) {
	cost := func(_ context.Context, _ string, m any) int64 {
		return int64(len(m.(*pb.SimpleRequest).GetPayload().GetBody()))
	}
	client := serve(t, &service{}, server(t, limiter(t, "10/1h"), grpclimit.Options{Name: "bytes", Cost: cost}))
	call := func(n int) error {
		_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, n)}})
		return err
	}
	err := call(11)
	wantCode(t, err, codes.FailedPrecondition)
	if r := detail[*errdetails.RetryInfo](t, err); r != nil {
		t.Errorf("it can be retried after %v, want never", r)
	}
	if v := detail[*errdetails.QuotaFailure](t, err).GetViolations(); len(v) != 1 || v[0].GetSubject() != "bytes" {
		t.Errorf("the violations are %v, want one of bytes", v)
	}
	wantCode(t, call(10), codes.OK)
}

func TestACostThatIsNegativeIsInvalid(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "10/1h"), grpclimit.Options{Cost: func(context.Context, string, any) int64 { return -1 }}))
	_, err := client.EmptyCall(t.Context(), &pb.Empty{})
	wantCode(t, err, codes.InvalidArgument)
}

func TestPoliciesMatchCalls(t *testing.T) {
	set := policies(t, `
policies:
  - name: heavy
    match: {path: `+unaryCall+`, method: POST, host: "127.0.0.1"}
    key: [header:x-tenant]
    limits: [1/1h]
  - name: all
    match: {path: /grpc.testing.TestService/**}
    key: [client_ip]
    limits: [4/1h]
`)
	client := serve(t, &service{}, server(t, set, grpclimit.Options{}))
	heavy := func(tenant string) error {
		_, err := client.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "x-tenant", tenant), &pb.SimpleRequest{})
		return err
	}
	wantCode(t, heavy("a"), codes.OK)
	wantCode(t, heavy("b"), codes.OK)
	err := heavy("a")
	wantCode(t, err, codes.ResourceExhausted)
	if v := detail[*errdetails.QuotaFailure](t, err).GetViolations(); len(v) != 1 || v[0].GetSubject() != "heavy" {
		t.Errorf("the violations are %v, want one of heavy", v)
	}
	for range 2 {
		_, err := client.EmptyCall(t.Context(), &pb.Empty{})
		wantCode(t, err, codes.OK)
	}
	_, err = client.EmptyCall(t.Context(), &pb.Empty{})
	wantCode(t, err, codes.ResourceExhausted)
}

// everyone has one grant.
type everyone struct{ grant policy.Grant }

func (e everyone) Grant(string) (*policy.Grant, bool)       { return &e.grant, true }
func (e everyone) Grants(f func(*policy.Grant) error) error { return f(&e.grant) }

func TestAPlanThatIsDeny(t *testing.T) {
	set := policies(t, `
policies:
  - {name: api, key: client_ip, limits: [5/1h], plans: {blocked: deny}}
`)
	if err := set.UseClients(everyone{policy.Grant{Plan: "blocked"}}); err != nil {
		t.Fatal(err)
	}
	client := serve(t, &service{}, server(t, set, grpclimit.Options{}))
	_, err := client.EmptyCall(t.Context(), &pb.Empty{})
	wantCode(t, err, codes.PermissionDenied)
	if details := status.Convert(err).Details(); len(details) > 0 {
		t.Errorf("the details are %v, want none: there is nothing to wait for", details)
	}
}

// Of several limits, those are told that never admit the call, and not those that are used up for now.
func TestACallCostsMoreThanOneOfSeveralLimits(t *testing.T) {
	set := policies(t, `
policies:
  - {name: small, key: client_ip, limits: [3/1h]}
  - {name: large, key: client_ip, limits: [10/1h]}
`)
	cost := int64(3)
	client := serve(t, &service{}, server(t, set, grpclimit.Options{Cost: func(context.Context, string, any) int64 { return cost }}))
	for _, c := range []struct {
		cost  int64
		code  codes.Code
		names []string
	}{
		{3, codes.OK, nil},
		{2, codes.ResourceExhausted, []string{"small"}},
		{8, codes.FailedPrecondition, []string{"small"}},
		{11, codes.FailedPrecondition, []string{"small", "large"}},
	} {
		cost = c.cost
		_, err := client.EmptyCall(t.Context(), &pb.Empty{})
		wantCode(t, err, c.code)
		var names []string
		for _, v := range detail[*errdetails.QuotaFailure](t, err).GetViolations() {
			names = append(names, v.GetSubject())
		}
		if !slices.Equal(names, c.names) {
			t.Errorf("a cost of %d is denied by %q, want %q", c.cost, names, c.names)
		}
	}
}

func TestKeysAreOfMetadata(t *testing.T) {
	client := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{Key: identity.Key{identity.Header("x-user-bin"), identity.Header("grpc-user")}}))
	call := func(user, reserved string) error {
		_, err := client.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), "x-user-bin", user, "grpc-user", reserved), &pb.Empty{})
		return err
	}
	wantCode(t, call("a\x00", "1"), codes.OK)
	wantCode(t, call("a\x01", "1"), codes.OK)
	wantCode(t, call("a\x00", "2"), codes.ResourceExhausted) // what begins with grpc- is not metadata
}

func TestSkipAndOverride(t *testing.T) {
	skip := func(_ context.Context, method string) bool { return method == unaryCall }
	other := limiter(t, "2/1h")
	override := func(ctx context.Context, _ string) *weir.Limiter {
		if md, _ := metadata.FromIncomingContext(ctx); len(md.Get("plan")) > 0 {
			return other
		}
		return nil
	}
	client := serve(t, &service{}, server(t, limiter(t, "1/1h"), grpclimit.Options{Skip: skip, Override: override}))
	for range 5 {
		_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{})
		wantCode(t, err, codes.OK)
	}
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted} {
		_, err := client.EmptyCall(metadata.AppendToOutgoingContext(t.Context(), "plan", "gold"), &pb.Empty{})
		if status.Code(err) != want {
			t.Errorf("call %d of the plan: %v, want %v", i, err, want)
		}
	}
	_, err := client.EmptyCall(t.Context(), &pb.Empty{})
	wantCode(t, err, codes.OK)
}

// Pitfall H8: what makes no sense is an error of the constructor.
func TestH8OptionsThatMakeNoSense(t *testing.T) {
	for name, opts := range map[string]grpclimit.Options{
		"MaxWait without PerMessage": {MaxWait: time.Second},
		"MaxWait below 0":            {MaxWait: -1, PerMessage: true},
		"Charge of messages":         {PerMessage: true, Charge: grpclimit.Failures},
		"no headers and some":        {Headers: header.None | header.Draft11},
		"one field of two meanings":  {Headers: header.XRateLimit | header.XRateLimitUnix},
		"headers that there are not": {Headers: 0x40},
		"Charge without a name":      {Charge: grpclimit.Failures},
		"a key of nothing":           {Key: identity.Key{identity.Func("", nil)}},
	} {
		if s, err := grpclimit.NewServer(limiter(t, "1/1s"), opts); err == nil || s != nil {
			t.Errorf("%s: %v and %v, want an error", name, s, err)
		}
	}
	if _, err := grpclimit.NewServer((*weir.Limiter)(nil), grpclimit.Options{}); err == nil {
		t.Error("a nil limiter is accepted")
	}
	if _, err := grpclimit.NewServer((*policy.Set)(nil), grpclimit.Options{}); err == nil {
		t.Error("a nil set is accepted")
	}
	var refused *admission.OptionError
	if _, err := grpclimit.NewServer(limiter(t, "1/1s"), grpclimit.Options{MaxWait: 1}); !errors.As(err, &refused) || refused.Field != "MaxWait" {
		t.Errorf("the error is %v, want an OptionError of MaxWait", err)
	}
}
