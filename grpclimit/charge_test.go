package grpclimit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/grpclimit"
	"github.com/weirlimit/weir/identity"
)

func TestOnlyFailuresAreCharged(t *testing.T) {
	var fail atomic.Bool
	login := &service{empty: func(context.Context) error {
		if fail.Load() {
			return status.Error(codes.Unauthenticated, "no")
		}
		return nil
	}}
	client := serve(t, login, server(t, limiter(t, "3/1h", weir.WithName("logins")), grpclimit.Options{Charge: grpclimit.Failures}))
	for range 10 {
		wantCode(t, empty(t.Context(), client), codes.OK)
	}
	fail.Store(true)
	for range 3 {
		wantCode(t, empty(t.Context(), client), codes.Unauthenticated)
	}
	wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
}

func TestOnlySuccessesAreCharged(t *testing.T) {
	broken := &service{empty: func(context.Context) error { return context.DeadlineExceeded }}
	l := limiter(t, "3/1h", weir.WithName("downloads"))
	s := server(t, l, grpclimit.Options{Charge: func(ctx context.Context, method string, a grpclimit.Answer) int64 {
		if a.Err != nil && a.Code != codes.DeadlineExceeded {
			t.Errorf("the code of %v is %v, want the one that gRPC sends", a.Err, a.Code)
		}
		return grpclimit.Successes(ctx, method, a)
	}})
	client := serve(t, broken, s)
	for range 10 {
		wantCode(t, empty(t.Context(), client), codes.DeadlineExceeded)
	}
	client = serve(t, &service{}, s)
	for range 3 {
		wantCode(t, empty(t.Context(), client), codes.OK)
	}
	wantCode(t, empty(t.Context(), client), codes.ResourceExhausted)
}

// What a call is charged is decided by its answer: of a unary call by the response, of a stream by what was sent and received, and of one that panics all the same.
func TestChargesByTheAnswer(t *testing.T) {
	l := limiter(t, "100/1000h", weir.WithName("work"))
	answers := make(chan grpclimit.Answer, 1)
	charge := func(_ context.Context, _ string, a grpclimit.Answer) int64 {
		answers <- a
		switch r := a.Response.(type) {
		case *pb.SimpleResponse:
			return int64(len(r.GetUsername()))
		default:
			return int64(10*a.Received + a.Sent)
		}
	}
	s := server(t, l, grpclimit.Options{Charge: charge})
	recovers := func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if recover() != nil {
				err = status.Error(codes.Internal, "recovered")
			}
		}()
		return next(ctx, r)
	}
	panics := func(context.Context) error { panic("!") }
	client := pb.NewTestServiceClient(dial(t, listen(t, &service{empty: panics}, grpc.ChainUnaryInterceptor(recovers, s.Unary), grpc.StreamInterceptor(s.Stream))))
	wantRoom := func(want int64) {
		t.Helper()
		eventually(t, "the answer is not charged", func() bool {
			d, err := l.Peek(t.Context(), "127.0.0.1")
			return err == nil && d.Remaining == want
		})
	}

	_, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("12345")}})
	wantCode(t, err, codes.OK)
	if a := <-answers; a.Code != codes.OK || a.Err != nil {
		t.Errorf("the answer is %v, want none that is an error", a)
	}
	wantRoom(95)

	both := duplex(t.Context(), t, client)
	for range 3 {
		wantCode(t, pingPong(both), codes.OK)
	}
	_ = both.CloseSend()
	_, _ = both.Recv()
	if a := <-answers; a.Received != 3 || a.Sent != 3 || a.Code != codes.OK {
		t.Errorf("the answer is %v, want 3 messages in and out", a)
	}
	wantRoom(95 - 33)

	wantCode(t, empty(t.Context(), client), codes.Internal)
	if a := <-answers; a.Code != codes.Internal || a.Err == nil || a.Response != nil {
		t.Errorf("the answer is %v, want one of no answer", a)
	}
	wantRoom(95 - 33)
}

// A call that nobody waits for takes nothing.
func TestACallOfAClientThatIsGone(t *testing.T) {
	l := limiter(t, "5/1h")
	s := server(t, l, grpclimit.Options{Key: identity.Key{identity.Everyone()}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Unary(ctx, &pb.Empty{}, &grpc.UnaryServerInfo{FullMethod: emptyCall}, func(context.Context, any) (any, error) {
		t.Error("it is served")
		return &pb.Empty{}, nil
	})
	wantCode(t, err, codes.Canceled)
	if d, err := l.Peek(t.Context(), "all"); err != nil || d.Remaining != 5 {
		t.Errorf("%v and %v: want nothing taken", d, err)
	}
}

// certified makes a certificate, signed by itself.
func certified(t *testing.T, name string) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed
}

func TestClientsAreToldApartByCertificate(t *testing.T) {
	own, root := certified(t, "server")
	alice, aliceRoot := certified(t, "alice")
	bob, bobRoot := certified(t, "bob")
	clients, servers := x509.NewCertPool(), x509.NewCertPool()
	clients.AddCert(aliceRoot)
	clients.AddCert(bobRoot)
	servers.AddCert(root)
	s := server(t, limiter(t, "1/1h"), grpclimit.Options{Key: identity.Key{identity.Certificate()}})
	target := listen(t, &service{}, grpc.UnaryInterceptor(s.Unary), grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, MinVersion: tls.VersionTLS13,
	})))
	as := func(c tls.Certificate) pb.TestServiceClient {
		return pb.NewTestServiceClient(dial(t, target, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{c}, RootCAs: servers, MinVersion: tls.VersionTLS13,
		}))))
	}
	wantCode(t, empty(t.Context(), as(alice)), codes.OK)
	wantCode(t, empty(t.Context(), as(bob)), codes.OK)
	wantCode(t, empty(t.Context(), as(alice)), codes.ResourceExhausted)
}
