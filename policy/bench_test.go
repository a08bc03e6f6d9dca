package policy_test

import (
	"context"
	"net/http"
	"net/netip"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// A decision by policies, in memory: of one limit, and of two policies with four limits and a candidate.
func BenchmarkCheck(b *testing.B) {
	config, err := policy.Parse([]byte(`
policies:
  - {name: one, match: {path: /one}, key: client_ip, limits: [1000000000/1s]}
  - {name: two, match: {path: "/many/**"}, key: [client_ip, "header:X-User"], limits: [1000000000/1s, 1000000000/1m], candidate: [1000000000/1s]}
  - {name: three, match: {path: "/many/**"}, key: "header:X-User", limits: [1000000000/1s, 1000000000/1m]}
`), "")
	if err != nil {
		b.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{"/none", "/one", "/many/x"} {
		b.Run(path[1:], func(b *testing.B) {
			b.ReportAllocs()
			r := &policy.Request{Method: "GET", Path: path, ClientIP: netip.MustParseAddr("192.0.2.1"), Header: http.Header{"X-User": {"alice"}}}
			for b.Loop() {
				if d, err := set.Check(context.Background(), r); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}
