package remote_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testcert"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

// opens opens a store at a URL and takes from it.
func opens(t *testing.T, url string) error {
	t.Helper()
	s, err := remote.Open(t.Context(), url, remote.Options{Timeout: patience})
	if err != nil {
		return err
	}
	defer s.Close()
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("100/1h")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	return err
}

func TestOverTLS(t *testing.T) {
	a, other := testcert.New(t), testcert.New(t)
	pair, client, expired := a.Issue(t, "weir.internal"), a.Issue(t, "client"), a.Issue(t, "late")
	a.Replace(t, expired, "late", time.Now().Add(-time.Hour))
	host := func(d *daemon) string { return strings.TrimPrefix(d.url(), "weir://") + "?timeout=1m" }
	plain := host(start(t, server.Config{}))
	oneWay := host(start(t, server.Config{TLSCert: pair.Cert, TLSKey: pair.Key}))
	mutual := host(start(t, server.Config{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: a.File}))
	ca := "&ca=" + a.File
	for url, want := range map[string]string{
		"weirs://" + oneWay + ca:                                                   "",
		"weirs://" + oneWay + "&insecure_skip_verify=true":                         "",
		"weirs://" + oneWay + ca + "&server_name=weir.internal":                    "",
		"weirs://" + oneWay + ca + "&server_name=elsewhere.example":                "not elsewhere.example",
		"weirs://" + oneWay:                                                        "unknown authority",
		"weirs://" + oneWay + "&ca=" + other.File:                                  "unknown authority",
		"weirs://" + plain + ca:                                                    "does not look like a TLS handshake",
		"weir://" + oneWay:                                                         "TLS required",
		"weirs://" + mutual + ca:                                                   "certificate required",
		"weirs://" + mutual + ca + "&cert=" + client.Cert + "&key=" + client.Key:   "",
		"weirs://" + mutual + ca + "&cert=" + expired.Cert + "&key=" + expired.Key: "expired certificate",
	} {
		if err := opens(t, url); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", url, err, want)
		}
	}
}

// A store that stays open uses the certificate that is in its files when it connects again.
func TestClientCertificatesAreReadAgain(t *testing.T) {
	before, after := testcert.New(t), testcert.New(t)
	pair, client := before.Issue(t, "weir.internal"), before.Issue(t, "client")
	d := start(t, server.Config{TLSCert: pair.Cert, TLSKey: pair.Key, TLSClientCA: before.File})
	s, err := remote.Open(t.Context(), "weirs://"+strings.TrimPrefix(d.url(), "weir://")+
		"?timeout=1m&ca="+before.File+"&cert="+client.Cert+"&key="+client.Key, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d.stop(t)
	d.cfg.TLSClientCA = after.File
	after.Replace(t, client, "client", time.Now().Add(time.Hour))
	d.begin(t)
	for err = s.Check(t.Context()); err != nil && t.Context().Err() == nil; err = s.Check(t.Context()) {
		if strings.Contains(err.Error(), "authority") {
			t.Fatal(err)
		}
	}
}
