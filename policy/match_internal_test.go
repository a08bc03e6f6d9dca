package policy

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// patternModel says what a pattern means with a regular expression.
func patternModel(pattern string) *regexp.Regexp {
	if expression, ok := strings.CutPrefix(pattern, "regex:"); ok {
		return regexp.MustCompile(`(?s)^(?:` + expression + `)$`)
	}
	if pattern == "**" {
		return regexp.MustCompile(`(?s)^.*$`)
	}
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(text, `/\*\*`, `(?:/.*)?`)
	text = strings.ReplaceAll(text, `\*`, `[^/]*`)
	return regexp.MustCompile(`(?s)^` + text + `$`)
}

func TestPathPatterns(t *testing.T) {
	for pattern, paths := range map[string]struct{ yes, no []string }{
		"/":               {[]string{"/"}, []string{"", "//", "/a"}},
		"/login":          {[]string{"/login"}, []string{"/login/", "/Login", "/logi", "/login?x", "login"}},
		"/api/**":         {[]string{"/api", "/api/", "/api/v1", "/api/v1/x//y"}, []string{"/apix", "/ap", "/", "api/v1", "/x/api/v1"}},
		"/**":             {[]string{"/", "/a", "/a/b", ""}, []string{"a", "*"}},
		"**":              {[]string{"", "/", "/a/b", "a", "*"}, nil},
		"/users/*/posts":  {[]string{"/users/7/posts", "/users//posts"}, []string{"/users/posts", "/users/7/8/posts", "/users/7/posts/"}},
		"/*.json":         {[]string{"/a.json", "/.json"}, []string{"/a/b.json", "/a.jsonx"}},
		"/a*c*e":          {[]string{"/ace", "/abcde", "/aceece"}, []string{"/aec", "/ae", "/a/ce"}},
		"/ab*ba":          {[]string{"/abba", "/abxba"}, []string{"/aba"}},
		"/**/x":           {[]string{"/x", "/a/x", "/a/x/x"}, []string{"/", "/x/", "/ax"}},
		"/a/**/b/**/c":    {[]string{"/a/b/c", "/a/x/b/y/z/c", "/a/b/b/c/c"}, []string{"/a/c", "/a/b", "/a/b/cc", "/a/b/c/"}},
		"/**/*/y":         {[]string{"/x/y", "//y", "/a/b/y"}, []string{"/y", "/y/x"}},
		"regex:/[0-9]+":   {[]string{"/1", "/123"}, []string{"/", "/1a", "x/1", "/1\n"}},
		"regex:/api/.*":   {[]string{"/api/x", "/api/\n", "/api/a\nb", "/api/\r\x00\u2028", "/api/\xff"}, []string{"/api", "\n/api/x"}},
		"regex:(?-s)/.":   {[]string{"/x"}, []string{"/\n"}},
		"/n/*":            {[]string{"/n/\n", "/n/a\r\nb", "/n/\x00", "/n/\u2028\xff"}, []string{"/n\n/x", "/n/\n/"}},
		"/m/**":           {[]string{"/m/\n", "/m/a\n/\r/\x00"}, []string{"/m\n", "\n/m/a"}},
		"/**/e":           {[]string{"/\n/\x00/e"}, []string{"/e\n"}},
		"regex:(?i)/a|/b": {[]string{"/A", "/b"}, []string{"/ab", "/a/b"}},
	} {
		p, problem := newPathPattern(pattern)
		if problem != "" {
			t.Errorf("%s: %s", pattern, problem)
			continue
		}
		for _, path := range paths.yes {
			if !p.matches(path) {
				t.Errorf("%s does not match %q", pattern, path)
			}
		}
		for _, path := range paths.no {
			if p.matches(path) {
				t.Errorf("%s matches %q", pattern, path)
			}
		}
	}
}

// drawPath makes paths and patterns of few segments, so that they meet.
func drawPath(t *rapid.T, segments []string) string {
	n := rapid.IntRange(0, 5).Draw(t, "segments")
	var b strings.Builder
	for range n {
		b.WriteString("/" + rapid.SampledFrom(segments).Draw(t, "segment"))
	}
	if n == 0 {
		return "/"
	}
	return b.String()
}

var (
	plainSegments   = []string{"", "a", "b", "ab", "aba"}
	patternSegments = append([]string{"*", "**", "a*", "*b", "a*a"}, plainSegments...)
)

func TestPathPatternsAreTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, path := drawPath(t, patternSegments), drawPath(t, plainSegments)
		p, problem := newPathPattern(text)
		if problem != "" {
			t.Fatal(problem)
		}
		if got, want := p.matches(path), patternModel(text).MatchString(path); got != want {
			t.Errorf("%s matches %q: %v, by the model %v", text, path, got, want)
		}
	})
}

// matchModel is a Match, as its documentation has it, without anything compiled.
func matchModel(m *Match, r *Request) bool {
	one := func(list []string, f func(string) bool) bool { return list == nil || slices.ContainsFunc(list, f) }
	host := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(r.Host, ":8080"), "."))
	query := map[string][]string{}
	for pair := range strings.SplitSeq(r.RawQuery, "&") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			query[name] = append(query[name], strings.ReplaceAll(value, "%61", "a"))
		}
	}
	attributes := map[string][]string{}
	for name, value := range r.Attributes {
		attributes[name] = []string{value}
	}
	return one(m.Path, func(p string) bool { return patternModel(p).MatchString(r.Path) }) &&
		one(m.Method, func(s string) bool { return strings.EqualFold(s, r.Method) }) &&
		one(m.Host, func(s string) bool {
			below, wild := strings.CutPrefix(strings.ToLower(s), "*")
			return !wild && below == host || wild && strings.HasSuffix(host, below) && host != below
		}) &&
		one(m.ClientIP, func(s string) bool { return netip.MustParsePrefix(s).Contains(r.ClientIP.Unmap()) }) &&
		valuesModel(m.Header, r.Header) && valuesModel(m.Query, query) && valuesModel(m.Attributes, attributes) &&
		!slices.ContainsFunc(m.Not, func(m Match) bool { return matchModel(&m, r) })
}

func valuesModel(want, have map[string][]string) bool {
	for name, texts := range want {
		if !slices.ContainsFunc(texts, func(w string) bool {
			text := strings.ReplaceAll(regexp.QuoteMeta(w), `\*`, `.*`)
			return slices.ContainsFunc(have[name], regexp.MustCompile(`(?s)^`+text+`$`).MatchString)
		}) {
			return false
		}
	}
	return true
}

func drawMatch(t *rapid.T, not bool) (m Match) {
	some := func(name string) bool { return rapid.IntRange(0, 3).Draw(t, name) == 0 }
	list := func(name string, of ...string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(of), 1, 2).Draw(t, name)
	}
	for range rapid.IntRange(0, 2).Draw(t, "paths") {
		switch rapid.IntRange(0, 4).Draw(t, "kind of path") {
		case 0:
			m.Path = append(m.Path, drawPath(t, plainSegments))
		case 1:
			m.Path = append(m.Path, strings.TrimSuffix(drawPath(t, plainSegments), "/")+"/**")
		case 2:
			m.Path = append(m.Path, "regex:/[ab]+(/.*)?")
		default:
			m.Path = append(m.Path, drawPath(t, patternSegments))
		}
	}
	if some("method") {
		m.Method = list("methods", "GET", "post")
	}
	if some("host") {
		m.Host = list("hosts", "a.com", "*.a.com", "B.com")
	}
	if some("ip") {
		m.ClientIP = list("ips", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "192.0.2.1/32")
	}
	values := func(name string) map[string][]string {
		return map[string][]string{rapid.SampledFrom([]string{"X-A", "X-B"}).Draw(t, name): list(name, "*", "a", "b*", "*a*", "")}
	}
	if some("header") {
		m.Header = values("headers")
	}
	if some("query") {
		m.Query = values("queries")
	}
	if some("attribute") {
		m.Attributes = values("attributes")
	}
	if not && some("not") {
		m.Not = []Match{drawMatch(t, false)}
	}
	if m.empty() {
		m.Method = []string{"PUT"}
	}
	return m
}

func drawRequest(t *rapid.T) *Request {
	value := func(name string) string {
		return rapid.SampledFrom([]string{"", "a", "b", "ba", "bab"}).Draw(t, name)
	}
	name := func(of string) string { return rapid.SampledFrom([]string{"X-A", "X-B"}).Draw(t, of) }
	r := &Request{Path: drawPath(t, plainSegments), Header: http.Header{}, Attributes: map[string]string{}}
	r.Method = rapid.SampledFrom([]string{"GET", "Get", "POST", "PUT", ""}).Draw(t, "method")
	r.Host = rapid.SampledFrom([]string{"a.com", "A.com:8080", "x.a.com", "b.com.", "a.com.x", ".a.com", ""}).Draw(t, "host")
	ips := []string{"10.0.0.1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1", "192.0.2.1", ""}
	if ip := rapid.SampledFrom(ips).Draw(t, "ip"); ip != "" {
		r.ClientIP = netip.MustParseAddr(ip)
	}
	for range rapid.IntRange(0, 2).Draw(t, "headers") {
		r.Header.Add(name("header"), value("header value"))
	}
	var pairs []string
	for range rapid.IntRange(0, 2).Draw(t, "parameters") {
		pairs = append(pairs, name("parameter")+"="+strings.ReplaceAll(value("parameter value"), "a", "%61"))
	}
	r.RawQuery = strings.Join(pairs, "&")
	for range rapid.IntRange(0, 2).Draw(t, "attributes") {
		r.Attributes[name("attribute")] = value("attribute value")
	}
	return r
}

// What the index finds are the policies that match when each is looked at, in their order.
func TestIndexFindsWhatMatches(t *testing.T) {
	matched, not := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := &Config{}
		for i := range rapid.IntRange(1, 20).Draw(t, "policies") {
			p := Policy{Name: fmt.Sprintf("p%d", i), Key: []string{"all"}, Limits: []NamedLimit{{Limit: "1/1s"}}}
			for range rapid.IntRange(0, 2).Draw(t, "alternatives") {
				p.Match = append(p.Match, drawMatch(t, true))
			}
			c.Policies = append(c.Policies, p)
		}
		problems := &problems{config: c}
		v := compile(c, problems)
		if err := problems.err(); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			r := drawRequest(t)
			var want []int32
			for i, p := range c.Policies {
				if len(p.Match) == 0 || slices.ContainsFunc(p.Match, func(m Match) bool { return matchModel(&m, r) }) {
					want = append(want, int32(i))
				}
			}
			if got := v.index.find(&facts{Request: r}, nil); !slices.Equal(got, want) {
				t.Fatalf("%+v\nmatches %v, by the model %v", r, got, want)
			}
			matched, not = matched+len(want), not+len(c.Policies)-len(want)
		}
	})
	if matched == 0 || not == 0 {
		t.Errorf("%d matched, %d did not: want both", matched, not)
	}
}

// thousand is an index of 1,000 policies, half of them for one path, half for all below one, with methods, hosts and headers besides.
func thousand(t testing.TB) *index {
	t.Helper()
	c := &Config{}
	for i := range 500 {
		c.Policies = append(c.Policies,
			Policy{Match: []Match{{Path: []string{fmt.Sprintf("/exact/%d/x", i)}, Method: []string{"GET", "POST"}, Header: map[string][]string{"X-A": {"*"}}}}},
			Policy{Match: []Match{{Path: []string{fmt.Sprintf("/below/%d/**", i)}, Host: []string{"*.example.com"}, ClientIP: []string{"10.0.0.0/8"}}}})
	}
	for i := range c.Policies {
		p := &c.Policies[i]
		p.Name, p.Key, p.Limits = fmt.Sprintf("p%d", i), []string{"client_ip"}, []NamedLimit{{Limit: "1/1s"}}
	}
	problems := &problems{config: c}
	v := compile(c, problems)
	if err := problems.err(); err != nil {
		t.Fatal(err)
	}
	return v.index
}

func thousandRequests() []*Request {
	exact := &Request{Method: "POST", Path: "/exact/321/x", Header: http.Header{"X-A": {"1"}}}
	below := &Request{Method: "GET", Host: "api.example.com:443", Path: "/below/499/v1/users/7", ClientIP: netip.MustParseAddr("10.1.2.3")}
	return []*Request{exact, below}
}

func TestMatchingAThousandPoliciesAllocatesNothing(t *testing.T) {
	x := thousand(t)
	buffer := make([]int32, 0, 16)
	for _, r := range thousandRequests() {
		if n := len(x.find(&facts{Request: r}, buffer)); n != 1 {
			t.Errorf("%s is matched by %d policies, want 1", r.Path, n)
		}
		if n := testing.AllocsPerRun(100, func() { x.find(&facts{Request: r}, buffer) }); n != 0 {
			t.Errorf("%s allocates %v times", r.Path, n)
		}
	}
}

func BenchmarkMatchThousand(b *testing.B) {
	x := thousand(b)
	buffer := make([]int32, 0, 16)
	for _, r := range thousandRequests() {
		b.Run(strings.Split(r.Path, "/")[1], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(x.find(&facts{Request: r}, buffer)) != 1 {
					b.Fatal("no match")
				}
			}
		})
	}
}
