package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/weirlimit/weir/identity"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	c := a.sign(t, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.certificate, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// sign makes a key and its certificate, which an authority without one of its own signs with that key.
func (a *authority) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, with := a.certificate, a.key
	if parent == nil {
		parent, with = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

func TestCertificates(t *testing.T) {
	known, other := newAuthority(t), newAuthority(t)
	id := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	client := func(a *authority, c x509.Certificate) tls.Certificate {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		return a.sign(t, &c)
	}
	twoNames, err := asn1.Marshal(pkix.RDNSequence{
		{{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "shop"}}, {{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "admin"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	shop := pkix.Name{CommonName: "shop, one", Organization: []string{"Example"}}
	all := client(known, x509.Certificate{URIs: []*url.URL{id("spiffe://example.com/shop"), id("spiffe://example.com/x")}, DNSNames: []string{"shop.example.com"}, Subject: shop})
	for name, c := range map[string]struct {
		auth tls.ClientAuthType
		cert tls.Certificate
		want string // the certificate's name; "" is that it is no certificate of who asks
	}{
		"an URI":                         {tls.RequireAndVerifyClientCert, all, "uri:spiffe://example.com/shop"},
		"if given":                       {tls.VerifyClientCertIfGiven, all, "uri:spiffe://example.com/shop"},
		"a name":                         {tls.RequireAndVerifyClientCert, client(known, x509.Certificate{DNSNames: []string{"shop.example.com", "x"}, Subject: shop}), "dns:shop.example.com"},
		"a subject":                      {tls.RequireAndVerifyClientCert, client(known, x509.Certificate{Subject: shop}), `subject:CN=shop\, one,O=Example`},
		"a subject of two names":         {tls.RequireAndVerifyClientCert, client(known, x509.Certificate{RawSubject: twoNames}), "subject:CN=admin,CN=shop"},
		"nothing shown":                  {tls.VerifyClientCertIfGiven, tls.Certificate{}, ""},
		"asked for, and not verified":    {tls.RequireAnyClientCert, all, ""},
		"requested, and not verified":    {tls.RequestClientCert, all, ""},
		"of others, and so not verified": {tls.RequireAnyClientCert, client(other, x509.Certificate{Subject: shop}), ""},
	} {
		got := make(chan [2]string, 1)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- [2]string{identity.Certificate().Value(r), identity.CertificateName().Value(r)}
		}))
		roots := x509.NewCertPool()
		roots.AddCert(known.certificate)
		s.TLS = &tls.Config{ClientAuth: c.auth, ClientCAs: roots}
		s.StartTLS()
		transport := s.Client().Transport.(*http.Transport)
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.cert, nil }
		if _, err := s.Client().Get(s.URL); err != nil {
			t.Fatal(err)
		}
		want := [2]string{"", c.want}
		if c.want != "" {
			sum := sha256.Sum256(c.cert.Certificate[0])
			want[0] = hex.EncodeToString(sum[:])
		}
		if got := <-got; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		s.Close()
	}
}

// A certificate that says nothing names nobody, and neither does a request without TLS.
func TestCertificatesOfNobody(t *testing.T) {
	leaf := newAuthority(t).certificate
	for _, state := range []*tls.ConnectionState{nil, {}, {PeerCertificates: []*x509.Certificate{leaf}}, {VerifiedChains: [][]*x509.Certificate{{}}}, {VerifiedChains: [][]*x509.Certificate{{leaf}}}} {
		r := from("192.0.2.7:1")
		r.TLS = state
		if got := identity.CertificateName().Value(r); got != "" {
			t.Errorf("the name is %q", got)
		}
	}
}
