package checks_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/policy"
)

func TestPaths(t *testing.T) {
	for path, ok := range map[string]bool{
		"": true, "*": true, "/": true, "/login": true, "/a b/é": true, "//x": true, "/a#b": true,
		"login": false, "/login?": false, "/login?a=1": false, "http://h/login": false, "?a": false, " /login": false, "**": false,
	} {
		var r checks.Request
		refusal := r.SetPath(path)
		switch {
		case (refusal == nil) != ok:
			t.Errorf("%q: %+v", path, refusal)
		case ok && r.Path != path || !ok && (r.Path != "" || refusal.Value != path || refusal.Accepted == ""):
			t.Errorf("%q: the path is %q, %+v", path, r.Path, refusal)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "2001:db8::1": "2001:db8::1", "::ffff:192.0.2.7": "::ffff:192.0.2.7", "fe80::1%eth0": "fe80::1%eth0",
		"": "", "localhost": "", "192.0.2.7:80": "", "[::1]": "", "192.0.2.7/32": "", "192.0.2.256": "", "192.0.2.7,": "",
	} {
		var r checks.Request
		refusal := r.SetAddress(text)
		if want == "" {
			if refusal == nil || r.ClientIP.IsValid() || refusal.Accepted == "" {
				t.Errorf("%q is read as %v", text, r.ClientIP)
			}
		} else if refusal != nil || r.ClientIP != netip.MustParseAddr(want) {
			t.Errorf("%q: %v, %+v", text, r.ClientIP, refusal)
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	var r checks.Request
	for i := range checks.MaxHeaders {
		if refusal := r.AddHeader("x-"+strconv.Itoa(i%10), "v"); refusal != nil {
			t.Fatalf("header %d: %+v", i, refusal)
		}
	}
	if refusal := r.AddHeader("X-1", "v"); refusal == nil || refusal.Accepted != "at most 100" {
		t.Errorf("one more: %+v", refusal)
	}
	if !r.HasHeader("X-9") || !r.HasHeader("x-9") || r.HasHeader("X-10") || len(r.Header["X-9"]) != 10 {
		t.Errorf("the headers are %v", r.Header)
	}
	for _, name := range []string{"", "a b", "a:", "é", "a\n", "(", "\x7f", "{x}"} {
		if refusal := new(checks.Request).AddHeader(name, "v"); refusal == nil || refusal.Accepted != checks.NameAccepted {
			t.Errorf("the name %q: %+v", name, refusal)
		}
	}
	if refusal := new(checks.Request).AddHeader("!#$%&'*+-.^_`|~09azAZ", "\x00"); refusal != nil {
		t.Errorf("a strange name: %+v", refusal)
	}
}

func TestAttributesAreBounded(t *testing.T) {
	var r checks.Request
	for i := range checks.MaxAttributes {
		if refusal := r.AddAttribute(strconv.Itoa(i), "v"); refusal != nil {
			t.Fatalf("attribute %d: %+v", i, refusal)
		}
	}
	if refusal := r.AddAttribute("7", "w"); refusal == nil || !strings.Contains(refusal.Value, `"7" given twice`) || r.Attributes["7"] != "v" {
		t.Errorf("one again: %+v, and it is %q", refusal, r.Attributes["7"])
	}
	if refusal := r.AddAttribute("more", "v"); refusal == nil || len(r.Attributes) != checks.MaxAttributes {
		t.Errorf("one more: %+v", refusal)
	}
}

func TestHolds(t *testing.T) {
	for n, ok := range map[int64]bool{0: true, 1: true, 86_400_000: true, -1: false, 86_400_001: false, 1 << 62: false} {
		var r checks.Request
		if refusal := r.SetHold(n); (refusal == nil) != ok || r.Hold.Milliseconds() != n && ok || r.Hold != 0 && !ok {
			t.Errorf("%d: %v, %+v", n, r.Hold, refusal)
		}
	}
}

func TestCosts(t *testing.T) {
	for n, ok := range map[int64]bool{0: true, 1: true, policy.MaxCost: true, policy.MaxCost + 1: false, -1: false} {
		var r checks.Request
		if refusal := r.SetCost(n); (refusal == nil) != ok || ok && *r.Cost != n || !ok && (r.Cost != nil || refusal.Accepted != checks.CostAccepted) {
			t.Errorf("%d: %+v", n, refusal)
		}
	}
}
