package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// manyReaders are policies, each with a query, a cookie and a header.
func manyReaders(n int) string {
	var b strings.Builder
	b.WriteString("policies:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: p%d, match: {query: {q: none}}, key: ['query:k', 'cookie:c'], limits: [1/1s]}\n", i)
		fmt.Fprintf(&b, "  - {name: c%d, match: {not: {header: {X: '*a*b*'}}, query: {q: none}}, key: 'cookie:c', limits: [1/1s]}\n", i)
	}
	return b.String()
}

// A query is parsed once for all policies: the work does not grow with their number.
func TestQueriesAreParsedOnce(t *testing.T) {
	r := request("GET /")
	r.RawQuery = strings.Repeat("%61=%62&", 900)
	r.Header.Set("Cookie", strings.Repeat("a=b; ", 900))
	allocations := map[int]float64{}
	for _, n := range []int{1, 50} {
		s := newSet(t, manyReaders(n), policy.Options{})
		allocations[n] = testing.AllocsPerRun(5, func() { check(t, s, r) })
	}
	if allocations[50] > allocations[1]+20 {
		t.Errorf("%v allocations for 2 policies, %v for 100", allocations[1], allocations[50])
	}
}

// The same of cookies, in keys.
func TestCookiesAreParsedOnce(t *testing.T) {
	r := request("GET /")
	r.Header.Set("Cookie", strings.Repeat("a=b; ", 900))
	allocations := map[int]float64{}
	for _, n := range []int{1, 21} {
		text := "policies:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: p%d, key: ['cookie:x%d|cookie:y%d|cookie:z%d'], limits: [1000000000/1s]}\n", i, i, i, i)
		}
		s := newSet(t, text, policy.Options{})
		allocations[n] = testing.AllocsPerRun(5, func() { check(t, s, r) })
	}
	if each := (allocations[21] - allocations[1]) / 20; each > 20 {
		t.Errorf("%v allocations for each policy more; the cookies are 900", each)
	}
}

// A request too long for a match is refused, and never decided as a request without a policy.
func TestRequestsBeyondTheBounds(t *testing.T) {
	s := newSet(t, `policies:
  - {name: all, key: client_ip, limits: [1000000/1s]}
  - {name: path, match: {path: "/login"}, key: client_ip, limits: [1/1h]}
  - {name: query, match: {path: /q, query: {user: "*"}}, key: client_ip, limits: [1000/1s]}
  - {name: not, match: {path: /n, not: {header: {X-A: "*"}}}, key: client_ip, limits: [1000/1s]}
  - {name: cookie, match: {path: /c}, key: ["cookie:sid"], limits: [1000/1s]}
  - {name: attribute, match: {path: /a}, key: ["attribute:user"], limits: [1000/1s]}
  - {name: cost, match: {path: /cost}, key: client_ip, cost: "header:X-Cost", limits: [1000/1s]}
  - {name: regex, match: {path: "regex:/x*", method: PUT}, key: client_ip, limits: [1000/1s]}
  - {name: regex-in-shadow, mode: shadow, match: {path: "regex:/x*"}, key: client_ip, limits: [1000/1s]}
  - {name: shadow, mode: shadow, match: {path: /s, query: {user: "*"}}, key: ["query:page"], limits: [1000/1s]}
`, policy.Options{})
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		line   string
		change func(r *policy.Request)
		want   string // "" is that it is decided
	}{
		"a path":              {"GET /", func(r *policy.Request) { r.Path = "/" + long(policy.MaxPath-1) }, ""},
		"a longer one":        {"GET /", func(r *policy.Request) { r.Path = "/" + long(policy.MaxPath) }, `path is "8193 bytes"; accepted: at most 8192 bytes`},
		"a path for a regex":  {"PUT /", func(r *policy.Request) { r.Path = "/" + long(policy.MaxRegexPath-1) }, ""},
		"a longer one for it": {"PUT /", func(r *policy.Request) { r.Path = "/" + long(policy.MaxRegexPath) }, `path is "2049 bytes"; accepted: at most 2048 bytes for a regular expression`},
		"that no regex has":   {"GET /", func(r *policy.Request) { r.Path = "/" + long(policy.MaxRegexPath) }, ""},
		"a method":            {"GET /", func(r *policy.Request) { r.Method = long(129) }, `method is "129 bytes"`},
		"a host":              {"GET /", func(r *policy.Request) { r.Host = long(1025) }, `host is "1025 bytes"`},
		"a query":             {"GET /q", func(r *policy.Request) { r.RawQuery = "user=" + long(policy.MaxQuery-5) }, ""},
		"a longer query":      {"GET /q", func(r *policy.Request) { r.RawQuery = "user=" + long(policy.MaxQuery-4) }, `query is "32769 bytes"`},
		"that nobody reads":   {"GET /x", func(r *policy.Request) { r.RawQuery = long(1 << 20) }, ""},
		"parameters":          {"GET /q", func(r *policy.Request) { r.RawQuery = strings.Repeat("&", policy.MaxParameters-1) + "user=1" }, ""},
		"more parameters":     {"GET /q", func(r *policy.Request) { r.RawQuery = strings.Repeat("&", policy.MaxParameters) + "user=1" }, `query is "1001 parameters"`},
		"a header":            {"GET /n", func(r *policy.Request) { r.Header["X-A"] = []string{long(1 << 14), long(1 << 14)} }, ""},
		"a longer header":     {"GET /n", func(r *policy.Request) { r.Header["X-A"] = []string{long(1 << 14), long(1<<14 + 1)} }, `header X-A is "32769 bytes"`},
		"many values":         {"GET /n", func(r *policy.Request) { r.Header["X-A"] = make([]string, 1001) }, `header X-A is "1001 values"`},
		"another header":      {"GET /n", func(r *policy.Request) { r.Header["X-B"] = []string{long(1 << 20)} }, ""},
		"a cookie":            {"GET /c", func(r *policy.Request) { r.Header.Set("Cookie", "sid="+long(1<<15)) }, `header Cookie is "32772 bytes"`},
		"many cookies":        {"GET /c", func(r *policy.Request) { r.Header.Set("Cookie", strings.Repeat("a=b;", 1000)+"sid=1") }, `header Cookie is "1001 cookies"`},
		"an attribute":        {"GET /a", func(r *policy.Request) { r.Attributes["user"] = long(policy.MaxValue + 1) }, `attribute user is "32769 bytes"`},
		"another attribute":   {"GET /a", func(r *policy.Request) { r.Attributes["other"] = long(1 << 20) }, ""},
		"a query in shadow":   {"GET /s", func(r *policy.Request) { r.RawQuery = long(policy.MaxQuery + 1) }, ""},
		"a cost in a header":  {"GET /cost", func(r *policy.Request) { r.Header["X-Cost"] = make([]string, 1001) }, `header X-Cost is "1001 values"`},
	} {
		r := request(c.line)
		r.Header = http.Header{}
		c.change(r)
		d, err := s.Check(t.Context(), r)
		if _, explained := s.Explain(t.Context(), r); (explained == nil) != (err == nil) {
			t.Errorf("%s: checked with the error %v, explained with %v", name, err, explained)
		}
		if keys := s.Keys(r); (keys == nil) != (err != nil) {
			t.Errorf("%s: error %v, keys %q", name, err, keys)
		}
		var wrong *policy.RequestError
		switch {
		case c.want == "" && (err != nil || len(d.Each) == 0):
			t.Errorf("%s: %v, %+v", name, err, d)
		case c.want != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || d.Allowed):
			t.Errorf("%s: error %v, allowed %v; want %s", name, err, d.Allowed, c.want)
		}
	}
}

func TestRegularExpressionsAreBounded(t *testing.T) {
	c := &policy.Config{}
	for i := range 257 {
		if i == 256 {
			if _, err := policy.New(c, policy.Options{}); err != nil {
				t.Errorf("of 256: %v", err)
			}
		}
		c.Policies = append(c.Policies, policy.Policy{
			Name: fmt.Sprint("p", i), Key: []string{"all"}, Limits: limits("1/1s"), Match: []policy.Match{{Path: []string{"regex:/a"}}},
		})
	}
	if _, err := policy.New(c, policy.Options{}); err == nil || !strings.Contains(err.Error(), "policies[256].match[0].path[0] is one more regular expression than 256") {
		t.Errorf("of 257: %v", err)
	}
}

func BenchmarkLongRequests(b *testing.B) {
	config, err := policy.Parse([]byte(manyReaders(50)), "")
	if err != nil {
		b.Fatal(err)
	}
	s, err := policy.New(config, policy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for name, r := range map[string]*policy.Request{
		"query":    {Path: "/", RawQuery: strings.Repeat("%61=%62&", 999)},
		"too_long": {Path: "/", RawQuery: strings.Repeat("a=b&", 1<<18)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = s.Check(b.Context(), r)
			}
		})
	}
}
