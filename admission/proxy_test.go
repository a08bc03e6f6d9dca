package admission_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// from is a request of a peer with a header field. A peer without a port is on a Unix socket.
func from(peer, field, value string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if r.RemoteAddr = peer; peer == "@" {
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.UnixAddr{Net: "unix", Name: "s"})))
	}
	if field != "" {
		r.Header.Set(field, value)
	}
	return r
}

// Behind an untrusted proxy all clients count as one, silently. So it is
// logged, once.
func TestProxyThatIsNotTrustedIsLogged(t *testing.T) {
	behind, err := identity.Behind("X-Forwarded-For", "10.0.0.0/8", "unix")
	if err != nil {
		t.Fatal(err)
	}
	other, err := identity.Behind("Cf-Connecting-Ip", "10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	const secret = "192.0.2.66"
	for name, test := range map[string]struct {
		opts    admission.Options
		request *http.Request
		want    []string // nil: nothing is logged
	}{
		"no proxies":       {admission.Options{}, from("10.1.2.3:77", "X-Forwarded-For", secret), []string{"X-Forwarded-For", "peer=10.1.2.3", `identity.Behind(\"X-Forwarded-For\", \"10.1.2.3\")`}},
		"Forwarded":        {admission.Options{}, from("[fd00::1]:77", "Forwarded", "for="+secret), []string{"Forwarded", "peer=fd00::1"}},
		"X-Real-IP":        {admission.Options{}, from("10.1.2.3:77", "X-Real-IP", secret), []string{"X-Real-Ip"}},
		"a Unix socket":    {admission.Options{}, from("@", "X-Forwarded-For", secret), []string{"peer=unix", `\"unix\"`}},
		"another peer":     {admission.Options{ClientIP: behind}, from("203.0.113.9:77", "X-Forwarded-For", secret), []string{"peer=203.0.113.9"}},
		"another field":    {admission.Options{ClientIP: other}, from("203.0.113.9:77", "CF-Connecting-IP", secret), []string{"Cf-Connecting-Ip", "peer=203.0.113.9"}},
		"in the Key":       {admission.Options{Key: identity.Key{identity.Header("X-Tenant"), identity.Peer.Source()}}, from("10.1.2.3:77", "X-Forwarded-For", secret), []string{"peer=10.1.2.3"}},
		"First in the Key": {admission.Options{Key: identity.Key{identity.First(identity.Header("X-Tenant"), identity.Peer.Network(32, 48))}}, from("10.1.2.3:77", "X-Forwarded-For", secret), []string{"peer=10.1.2.3"}},

		"no field":                 {admission.Options{}, from("10.1.2.3:77", "", ""), nil},
		"a trusted proxy":          {admission.Options{ClientIP: behind}, from("10.1.2.3:77", "X-Forwarded-For", secret), nil},
		"a trusted socket":         {admission.Options{ClientIP: behind}, from("@", "X-Forwarded-For", secret), nil},
		"a trusted one in the Key": {admission.Options{Key: identity.Key{behind.Source()}}, from("10.1.2.3:77", "X-Forwarded-For", secret), nil},
		"not by address":           {admission.Options{Key: identity.Key{identity.Header("X-Tenant")}}, from("10.1.2.3:77", "X-Forwarded-For", secret), nil},
		"skipped":                  {admission.Options{Skip: func(*http.Request) bool { return true }}, from("10.1.2.3:77", "X-Forwarded-For", secret), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log logged
			test.opts.Log = logTo(&log)
			g := gate(t, limiter(t, "100/1h"), test.opts)
			for range 3 {
				g.Admit(test.request)
			}
			checkProxyLog(t, &log, test.want, secret)
		})
	}
	t.Run("policies", func(t *testing.T) {
		var log logged
		g := gate(t, policies(t, `
policies:
  - name: all
    key: [client_ip]
    limits: ["100/1h"]
`, policy.Options{}), admission.Options{Log: logTo(&log)})
		for range 3 {
			g.Admit(from("10.1.2.3:77", "X-Forwarded-For", secret))
		}
		checkProxyLog(t, &log, []string{"peer=10.1.2.3"}, secret)
	})
}

func checkProxyLog(t *testing.T, log *logged, want []string, secret string) {
	t.Helper()
	text := log.String()
	lines := strings.Count(text, "\n")
	if want == nil && lines != 0 || want != nil && lines != 1 || strings.Contains(text, secret) {
		t.Errorf("%d lines: %s", lines, text)
	}
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}
