package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testcert"
)

// secure is the configuration of a server with TLS.
func secure(t *testing.T, a *testcert.Authority) (server.Config, testcert.Pair) {
	t.Helper()
	pair := a.Issue(t, "weir.internal")
	return server.Config{TLSCert: pair.Cert, TLSKey: pair.Key}, pair
}

// program returns the output of a program, which must be there.
func program(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		lacking(t, name)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader("PING\r\nQUIT\r\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

func port(a net.Addr) string {
	_, port, _ := net.SplitHostPort(a.String())
	return port
}

// Both protocols speak TLS with the programs that people use.
func TestTLSWithRealPrograms(t *testing.T) {
	a := testcert.New(t)
	cfg, _ := secure(t, a)
	s := start(t, cfg)
	cli := []string{"-h", "127.0.0.1", "-p", port(s.RESPAddr()), "--tls", "--cacert", a.File}
	if got := program(t, "redis-cli", append(cli, "WEIR.TAKE", "k", "5/1h")...); !strings.HasPrefix(got, "1\n5\n4\n") {
		t.Errorf("redis-cli --tls prints %q", got)
	}
	url := "https://127.0.0.1:" + port(s.HTTPAddr())
	if got := program(t, "curl", "-sS", "--cacert", a.File, "-d", `{"key":"k","limit":"5/1h"}`, url+"/v1/take"); !strings.HasPrefix(got, `{"allowed":true,"limit":5,"remaining":3`) {
		t.Errorf("curl prints %q", got)
	}
	for name, addr := range map[string]net.Addr{"resp": s.RESPAddr(), "http": s.HTTPAddr()} {
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			got := program(t, "openssl", "s_client", "-connect", addr.String(), "-CAfile", a.File, version, "-ign_eof", "-quiet")
			if name == "resp" && !strings.Contains(got, "+PONG") || name == "http" && !strings.Contains(got, "400 Bad Request") {
				t.Errorf("%s: openssl s_client %s prints %q", name, version, got)
			}
		}
		if got := program(t, "openssl", "s_client", "-connect", addr.String(), "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"); !strings.Contains(got, "alert protocol version") {
			t.Errorf("%s: openssl s_client -tls1_1 prints %q", name, got)
		}
	}
	if got := program(t, "redis-cli", "-p", port(s.RESPAddr()), "--tls", "--cacert", testcert.New(t).File, "PING"); !strings.Contains(got, "verify failed") {
		t.Errorf("with the wrong authority redis-cli prints %q", got)
	}
}

// tlsGet asks over HTTPS. Each call has a connection of its own.
func tlsGet(t *testing.T, s *server.Server, config *tls.Config, path string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	res, err := client.Get("https://" + s.HTTPAddr().String() + path)
	if err != nil {
		return "", err
	}
	return read(t, res, nil), nil
}

// ping sends PING to the Redis port over TLS.
func ping(s *server.Server, config *tls.Config) error {
	c, err := tls.Dial("tcp", s.RESPAddr().String(), config)
	if err != nil {
		return err
	}
	defer c.Close()
	_, _ = io.WriteString(c, "PING\r\n")
	line, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && line != "+PONG\r\n" {
		err = errors.New(line)
	}
	return err
}

// untilMetric waits until the metrics have a text: a client learns of its end before it is counted.
func untilMetric(t *testing.T, s *server.Server, want string) {
	t.Helper()
	for !strings.Contains(get(t, s, "/metrics"), want) && t.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// With tls-client-ca a client needs a certificate of its authority, on both protocols.
func TestClientsNeedCertificates(t *testing.T) {
	a, stranger := testcert.New(t), testcert.New(t)
	cfg, _ := secure(t, a)
	cfg.TLSClientCA = a.File
	var log record
	cfg.Log = log.logger()
	s := start(t, cfg)
	expired := a.Issue(t, "late")
	a.Replace(t, expired, "late", time.Now().Add(-time.Hour))
	for name, test := range map[string]struct {
		certificates []tls.Certificate
		want         string
	}{
		"none":                 {nil, "certificate required"},
		"another authority's":  {[]tls.Certificate{stranger.Issue(t, "stranger").Load(t)}, "unknown certificate authority"},
		"expired":              {[]tls.Certificate{expired.Load(t)}, "expired certificate"},
		"one of the authority": {[]tls.Certificate{a.Issue(t, "orders").Load(t)}, ""},
	} {
		config := &tls.Config{RootCAs: a.Pool()}
		if len(test.certificates) > 0 { // also where the server does not list its authority
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &test.certificates[0], nil }
		}
		_, err := tlsGet(t, s, config, "/healthz")
		for protocol, err := range map[string]error{"resp": ping(s, config), "http": err} {
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, certificate: %s: error %v, want %q", protocol, name, err, test.want)
			}
		}
	}
	pair := a.Issue(t, "orders")
	args := []string{"-p", port(s.RESPAddr()), "--tls", "--cacert", a.File}
	if got := program(t, "redis-cli", append(args, "--cert", pair.Cert, "--key", pair.Key, "PING")...); got != "PONG\n" {
		t.Errorf("redis-cli with a certificate prints %q", got)
	}
	if got := program(t, "redis-cli", append(args, "PING")...); strings.Contains(got, "PONG") {
		t.Errorf("redis-cli without a certificate prints %q", got)
	}
	for _, want := range []string{
		`weir_connections_cut_total{protocol="resp",reason="handshake"} 4`, `weir_connections_cut_total{protocol="http",reason="handshake"} 3`,
		"weir_tls_last_reload_successful 1", "weir_tls_certificate_expiry_timestamp_seconds ",
	} {
		untilMetric(t, s, want)
	}
	if !strings.Contains(log.String(), "client didn't provide a certificate") && !strings.Contains(log.String(), "unknown authority") &&
		!strings.Contains(log.String(), "expired") {
		t.Errorf("the log has no reason of a failed handshake: %s", log.String())
	}
}

// Clients of the wrong kind get an error that names the reason, and are counted.
func TestTLSMismatch(t *testing.T) {
	a := testcert.New(t)
	cfg, _ := secure(t, a)
	cfg.Log = new(record).logger()
	secured, open := start(t, cfg), start(t, server.Config{})
	for text, want := range map[string]string{
		"PING\r\n":               "-ERR TLS required: this port speaks TLS (redis-cli --tls, rediss://, weirs://)\r\n",
		"*1\r\n$4\r\nPING\r\n":   "-ERR TLS required: this port speaks TLS (redis-cli --tls, rediss://, weirs://)\r\n",
		"AUTH user secret\r\n":   "-ERR TLS required: this port speaks TLS (redis-cli --tls, rediss://, weirs://)\r\n",
		"GET / HTTP/1.1\r\n\r\n": "-ERR TLS required: this port speaks TLS (redis-cli --tls, rediss://, weirs://)\r\n",
	} {
		if line, err := say(t, secured.RESPAddr().String(), text); line != want {
			t.Errorf("%q at the TLS port of RESP is answered %q, %v", text, line, err)
		}
	}
	res, err := http.Get("http://" + secured.HTTPAddr().String() + "/healthz")
	if err != nil || res.StatusCode != http.StatusBadRequest {
		t.Fatalf("http:// at the port of https:// is answered %v, %v", res, err)
	}
	if body := read(t, res, nil); !strings.Contains(body, "use https://") {
		t.Errorf("http:// at the port of https:// is answered %s", body)
	}
	for _, address := range []net.Addr{open.RESPAddr(), open.HTTPAddr()} {
		if _, err := tls.Dial("tcp", address.String(), &tls.Config{RootCAs: a.Pool()}); err == nil || !strings.Contains(err.Error(), "does not look like a TLS handshake") {
			t.Errorf("TLS at a port without TLS: error %v", err)
		}
	}
	if metrics := get(t, open, "/metrics"); !strings.Contains(metrics, `weir_connections_cut_total{protocol="resp",reason="tls"} 1`) ||
		!strings.Contains(metrics, `weir_connections_cut_total{protocol="http",reason="tls"} 1`) {
		t.Errorf("TLS handshakes are not counted:\n%s", weirOnly(metrics))
	}
	for _, want := range []string{
		`weir_connections_cut_total{protocol="resp",reason="plain"} 4`, `weir_connections_cut_total{protocol="http",reason="plain"} 1`,
	} {
		untilMetric(t, secured, want)
	}
}

// The header of the PROXY protocol comes before the handshake.
func TestTLSBehindProxies(t *testing.T) {
	a := testcert.New(t)
	cfg, _ := secure(t, a)
	cfg.ProxyProtocolFrom = []string{"127.0.0.1"}
	s := start(t, cfg)
	raw, err := net.Dial("tcp", s.RESPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, _ = io.WriteString(raw, fromElsewhere)
	c := tls.Client(raw, &tls.Config{RootCAs: a.Pool(), ServerName: "weir.internal"})
	if got := shownOn(t, c, ""); got != "192.0.2.7:1234" {
		t.Errorf("the client is %s, want that of the header", got)
	}
	if got := program(t, "curl", "-sS", "--haproxy-protocol", "--cacert", a.File, "https://"+s.HTTPAddr().String()+"/healthz"); got != "ok\n" {
		t.Errorf("curl --haproxy-protocol prints %q", got)
	}
}

// New certificates are in use for new connections, and no connection is dropped or refused
// meanwhile. A broken change is rejected and shown.
func TestCertificatesChangeUnderLoad(t *testing.T) {
	a := testcert.New(t)
	cfg, pair := secure(t, a)
	var log record
	cfg.Log = log.logger()
	s := start(t, cfg)
	config := &tls.Config{RootCAs: a.Pool()}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() { // a connection that stays
			c, err := tls.Dial("tcp", s.RESPAddr().String(), config)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for r := bufio.NewReader(c); ctx.Err() == nil; {
				_, _ = io.WriteString(c, "PING\r\n")
				if line, err := r.ReadString('\n'); line != "+PONG\r\n" {
					t.Errorf("a connection of the old certificate is answered %q, %v", line, err)
					return
				}
			}
		})
		load.Go(func() { // connections that come
			for ctx.Err() == nil {
				if err := ping(s, config); err != nil {
					t.Error(err)
					return
				}
				if _, err := tlsGet(t, s, config, "/healthz"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	expires := func() string {
		c, err := tls.Dial("tcp", s.HTTPAddr().String(), config)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	until := func(is func() bool) {
		for !is() && t.Context().Err() == nil && !t.Failed() {
			time.Sleep(10 * time.Millisecond)
		}
	}
	a.Replace(t, pair, "second", time.Now().Add(3*24*time.Hour))
	until(func() bool { return expires() == "second" })
	if ready := get(t, s, "/readyz"); !strings.Contains(ready, "warning: the certificate expires within 7 days") {
		t.Errorf("/readyz says %q", ready)
	}
	if err := os.WriteFile(pair.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(func() bool { return s.Status().Certificate.Refused != "" })
	if ready := get(t, s, "/readyz"); !strings.Contains(ready, "warning: the last change of the certificate is refused") {
		t.Errorf("/readyz says %q", ready)
	}
	if metrics := get(t, s, "/metrics"); !strings.Contains(metrics, "weir_tls_last_reload_successful 0") {
		t.Errorf("the change is shown as successful:\n%s", weirOnly(metrics))
	}
	if got := expires(); got != "second" {
		t.Errorf("after a broken change the certificate is %q", got)
	}
	a.Replace(t, pair, "third", time.Now().Add(100*24*time.Hour))
	if err := s.Reload(); err != nil { // as SIGHUP does
		t.Error(err)
	}
	if got := expires(); got != "third" || s.Status().Certificate.Refused != "" {
		t.Errorf("after Reload the certificate is %q, status %+v", got, s.Status().Certificate)
	}
	cancel()
	load.Wait()
	if !strings.Contains(log.String(), "a change of the certificates is rejected") || strings.Contains(log.String(), "PRIVATE") {
		t.Errorf("the log is %s", log.String())
	}
}

// A certificate that has expired is served, and reported.
func TestExpiredCertificate(t *testing.T) {
	a := testcert.New(t)
	cfg, pair := secure(t, a)
	a.Replace(t, pair, "old", time.Now().Add(-time.Hour))
	var log record
	cfg.Log = log.logger()
	s := start(t, cfg)
	if err := ping(s, &tls.Config{RootCAs: a.Pool()}); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired certificate: error %v", err)
	}
	if ready := get(t, s, "/readyz"); !strings.Contains(ready, "warning: the certificate has expired") || !strings.Contains(log.String(), "the certificate has expired") {
		t.Errorf("/readyz says %q; log: %s", ready, log.String())
	}
}

// Files that can't be used are refused with the flag, the path and what is accepted.
func TestCertificatesAreRefused(t *testing.T) {
	a := testcert.New(t)
	pair, other := a.Issue(t, "weir"), a.Issue(t, "other")
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, err := os.ReadFile(pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	open, garbage := file("open.pem", string(private), 0o644), file("garbage.pem", "garbage", 0o600)
	for _, test := range []struct {
		cert, key, ca string
		field, want   string
	}{
		{"", pair.Key, "", "tls-key", "tls-cert too"},
		{pair.Cert, "", "", "tls-cert", "tls-key too"},
		{"", "", a.File, "tls-client-ca", "tls-cert and tls-key too"},
		{"gone.pem", pair.Key, "", "tls-cert", "no such file"},
		{garbage, pair.Key, "", "tls-cert", "no certificate in PEM"},
		{dir, pair.Key, "", "tls-cert", "is a directory"},
		{pair.Cert, "gone.pem", "", "tls-key", "no such file"},
		{pair.Cert, garbage, "", "tls-key", "find any PEM data"},
		{pair.Cert, other.Key, "", "tls-key", "does not match"},
		{pair.Cert, open, "", "tls-key", "mode 0644 lets everybody read"},
		{pair.Cert, pair.Key, garbage, "tls-client-ca", "no certificate in PEM"},
		{pair.Cert, pair.Key, "gone.pem", "tls-client-ca", "no such file"},
	} {
		s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: "0", TLSCert: test.cert, TLSKey: test.key, TLSClientCA: test.ca})
		if err == nil {
			err = s.Open(t.Context())
		}
		refused, ok := errors.AsType[*server.ConfigError](err)
		if !ok || refused.Field != test.field || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%+v: error %v", test, err)
		}
	}
}

// Listening beyond loopback needs TLS and authentication, or Insecure.
func TestListeningBeyondLoopback(t *testing.T) {
	a := testcert.New(t)
	cfg, _ := secure(t, a)
	mutual := cfg
	mutual.TLSClientCA = a.File
	for name, test := range map[string]struct {
		cfg   server.Config
		lacks string
	}{
		"nothing": {server.Config{}, "without TLS and authentication"},
		"TLS":     {cfg, "without authentication"},
		"mutual":  {mutual, ""},
	} {
		for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
			for _, field := range []string{"resp", "http", "admin"} {
				c := test.cfg
				c.RESP, c.HTTP, c.Admin = "0", "0", "0"
				if *map[string]*string{"resp": &c.RESP, "http": &c.HTTP, "admin": &c.Admin}[field] = address; test.lacks == "" {
					start(t, c)
					continue
				}
				_, err := server.New(c)
				refused, ok := errors.AsType[*server.ConfigError](err)
				if !ok || refused.Field != field || !strings.Contains(err.Error(), test.lacks) || !strings.Contains(refused.Accept, "insecure") {
					t.Errorf("%s, %s %s: error %v", name, field, address, err)
				}
				c.Insecure = true
				var log record
				c.Log = log.logger()
				start(t, c)
				if !strings.Contains(log.String(), "listening beyond this machine "+test.lacks) {
					t.Errorf("%s, %s %s with Insecure: log %s", name, field, address, log.String())
				}
			}
		}
	}
	for _, address := range []string{"127.0.0.1:0", "127.1.2.3:0", "localhost:0", "0"} {
		start(t, server.Config{RESP: address, HTTP: "off", Admin: "off"})
	}
	for _, address := range []string{"192.0.2.1:0", "weir.example.com:0"} { // no address of this machine
		s, err := server.New(server.Config{RESP: address, HTTP: "off", Admin: "off"})
		if err == nil {
			err = s.Open(t.Context())
		}
		if _, ok := errors.AsType[*server.ConfigError](err); !ok {
			t.Errorf("%s: error %v", address, err)
		}
	}
}

// 0.0.0.0 is all addresses of IPv4, and none of IPv6.
func TestListeningAtIPv4Only(t *testing.T) {
	s := start(t, server.Config{RESP: "0.0.0.0:0", HTTP: "off", Admin: "off", Insecure: true})
	if ip := s.RESPAddr().(*net.TCPAddr).IP; ip.To4() == nil {
		t.Errorf("0.0.0.0 is listened at as %s", ip)
	}
}

// The admin listener has TLS beyond loopback, and none at loopback and at Unix sockets.
func TestAdminOverTLS(t *testing.T) {
	a := testcert.New(t)
	cfg, pair := secure(t, a)
	cfg.TLSClientCA, cfg.Admin = a.File, "0.0.0.0:0"
	s := start(t, cfg)
	trusted := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{pair.Load(t)}}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}}
	res, err := client.Get("https://127.0.0.1:" + port(s.AdminAddr()) + "/v1/status")
	if got := read(t, res, err); !strings.Contains(got, `"certificate":{"names":["weir.internal",`) {
		t.Errorf("the status is %s", got)
	}
	client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool()}}
	if _, err = client.Get("https://127.0.0.1:" + port(s.AdminAddr()) + "/metrics"); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: error %v", err)
	}
	cfg.Admin = ""
	if got := get(t, start(t, cfg), "/metrics"); !strings.Contains(got, "weir_tls_last_reload_successful 1") {
		t.Errorf("at loopback the metrics are\n%s", weirOnly(got))
	}
}

// A client whose authority is removed can't come back with the session of an earlier connection.
func TestSessionsEndWithTheirAuthority(t *testing.T) {
	a, other := testcert.New(t), testcert.New(t)
	cfg, pair := secure(t, a)
	cfg.TLSClientCA = filepath.Join(t.TempDir(), "ca.pem")
	trust := func(authority *testcert.Authority) {
		text, err := os.ReadFile(authority.File)
		if err == nil {
			err = os.WriteFile(cfg.TLSClientCA, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	trust(a)
	s := start(t, cfg)
	config := &tls.Config{RootCAs: a.Pool(), ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	client := pair.Load(t)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &client, nil }
	resumes := func() (bool, error) {
		c, err := tls.Dial("tcp", s.RESPAddr().String(), config)
		if err != nil {
			return false, err
		}
		defer c.Close()
		_, _ = io.WriteString(c, "PING\r\n")
		_, err = bufio.NewReader(c).ReadString('\n')
		return c.ConnectionState().DidResume, err
	}
	for i, want := range []bool{false, true} {
		if got, err := resumes(); got != want || err != nil {
			t.Errorf("connection %d resumes a session: %v, %v", i, got, err)
		}
	}
	trust(other)
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got, err := resumes(); err == nil {
		t.Errorf("a client of an authority that was removed is served, by a session: %v", got)
	}
}
