package policy_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// Keys and clients that are secrets of the client are masked in explanations, and the rest stays
// readable.
func TestExplanationMasksNames(t *testing.T) {
	const secret = "sk_live_4f9a8b7c6d5e4f3a"
	s := newTimed(t, `
policies:
  - {name: one, match: {path: /x}, key: ["header:X-API-Key"], limits: [5/1h], plans: {gold: [9/1h]}}
  - {name: either, match: {path: /x}, key: ["header:X-API-Key|client_ip", client_ip/24/64], limits: [5/1h]}
  - {name: several, match: {path: /x}, key: [client_ip, "query:token", "cookie:id", "attribute:user", method, path], limits: [5/1h]}
  - {name: only, match: {path: /x, header: {X-API-Key: "other*"}}, key: ["header:X-API-Key"], limits: [5/1h]}
  - {name: region, match: {path: /x, header: {X-Region: eu}}, key: ["header:X-API-Key"], limits: [5/1h]}
  - {name: all, match: {path: /x}, key: all, limits: [5/1h]}
`, policy.Options{})
	request := func(key string) *policy.Request {
		r := &policy.Request{
			Method: "GET", Path: "/x", Header: http.Header{"Cookie": {"id=" + secret}, "X-Region": {"us"}}, RawQuery: "token=" + secret,
			Attributes: map[string]string{"user": secret}, ClientIP: netip.MustParseAddr("192.0.2.7"),
		}
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		return r
	}
	mask := identity.Mask(secret)
	_, hash, _ := strings.Cut(mask, "#")
	cookie := "#" + hash // its key has only the hash
	for key, want := range map[string][]string{
		secret: {mask, "header:X-Api-Key=" + mask + ",192.0.2.0", "192.0.2.7," + mask + "," + cookie + "," + mask + ",GET,/x", "", "", ""},
		"":     {"-", "client_ip=192.0.2.7,192.0.2.0", "192.0.2.7," + mask + "," + cookie + "," + mask + ",GET,/x", "", "", ""},
	} {
		e, err := s.Explain(t.Context(), request(key))
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range e.Policies {
			if !strings.HasPrefix(p.Key, want[i]) || (want[i] == "") != (p.Key == "") {
				t.Errorf("the key of %s is %q, want %q", p.Name, p.Key, want[i])
			}
		}
		var text strings.Builder
		if err := e.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		encoded, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range []string{text.String(), string(encoded)} {
			if strings.Contains(all, secret[:5]) {
				t.Errorf("it shows the secret: %s", all)
			}
			if !strings.Contains(all, "us") { // of a field that identifies no client
				t.Errorf("it does not show the region: %s", all)
			}
		}
		d, err := s.Check(t.Context(), request(key))
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range d.Each[:3] {
			if got := l.MaskedKey(); !strings.HasPrefix(got, want[i]) || key != "" && !strings.Contains(l.Key, secret) {
				t.Errorf("the key of %s is %q, masked %q, want %q", l.Policy, l.Key, got, want[i])
			}
		}
	}
	if l := (policy.LimitDecision{Key: secret}); l.MaskedKey() != mask {
		t.Errorf("without a policy it is %s", l.MaskedKey())
	}
}

// A value that did not match is masked where any policy distinguishes clients by it, and where it
// holds credentials; a value that the request does not have is none.
func TestMismatchMasksNames(t *testing.T) {
	const secret = "sk_live_4f9a8b7c6d5e4f3a"
	s := newSet(t, `
policies:
  - {name: key, match: {header: {X-API-Key: "other*"}}, key: client_ip, limits: [5/1h]}
  - {name: token, match: {query: {token: "other*"}}, key: ["hash:query:token", "header:X-API-Key"], limits: [5/1h]}
  - {name: login, match: {header: {Authorization: "Basic *"}}, key: client_ip, limits: [5/1h]}
`, policy.Options{})
	r := request("GET /x")
	r.Header = http.Header{"X-Api-Key": {secret}, "Authorization": {secret}}
	r.RawQuery = "token=" + secret
	for value, r := range map[string]*policy.Request{identity.Mask(secret): r, "none": request("GET /x")} {
		e, err := s.Explain(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range e.Policies {
			if p.Mismatch == nil || p.Mismatch.Found != value {
				t.Errorf("%s: the mismatch is %v, want one with %s", p.Name, p.Mismatch, value)
			}
		}
	}
}

func TestMaskClient(t *testing.T) {
	const secret = "sk_live_4f9a8b7c6d5e4f3a"
	hashed, err := policy.ClientName("hash:header:X-API-Key=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	mask := identity.Mask(secret)
	_, hash, _ := strings.Cut(mask, "#")
	for name, want := range map[string]string{
		"": "", "acme": identity.Mask("acme"), secret: mask, "a=b": identity.Mask("a=b"),
		"client_ip=192.0.2.7": "client_ip=192.0.2.7", "client_ip=2001:db8::/64": "client_ip=2001:db8::/64", "client_ip=" + secret: "client_ip=" + mask,
		"header:X-Api-Key=" + secret: "header:X-Api-Key=" + mask,
		hashed:                       "hash:header:X-Api-Key=" + "#" + hash,
	} {
		if got := policy.MaskClient(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
