package policy

import (
	"fmt"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
)

// A Match says which requests a policy is for: those for which all that is given here holds, of each list at least one. The zero Match is for all.
type Match struct {
	// Method are methods such as POST, in any case. GET includes HEAD, unless an enforced policy
	// with limits lists HEAD, is not for these GETs, and matches all further conditions of this
	// Match.
	Method []string
	// Path is exact, or a pattern: * stands for any number of characters other than /, ** for any number of segments, and
	// regex: precedes a regular expression, as package regexp has them, for the whole path. All of them take any character, newlines too.
	Path []string
	Host []string // exact, or *.example.com for all hosts below example.com; in any case, without a port
	// ClientIP are addresses and CIDRs. Addresses of IPv4 that are written in IPv6 are IPv4.
	ClientIP []string
	// Header, Query and Attributes are by name. A value is exact, or has * for any number of any characters; "*" alone is that there is one, be it empty.
	// Of several values that a request has for a name, one is enough.
	Header, Query, Attributes map[string][]string
	Not                       []Match // none of these; they have no Not of their own
}

// A test is one thing that has to hold for a request.
type test interface {
	holds(r *facts) bool
	// field is what it looks at, as the configuration calls it, want what would hold, and found what the request has.
	field() string
	want() string
	found(r *facts) string
}

// An alternative is a compiled Match.
type alternative struct {
	paths []pathPattern // one of them; of none, all
	tests []test
}

// matches reports whether all holds, other than the path.
func (a *alternative) matches(r *facts) bool {
	for _, t := range a.tests {
		if !holds(t, r) {
			return false
		}
	}
	return true
}

// holds is t.holds. It calls it by its kind, so that a request that is decided need not be on the heap.
func holds(t test, r *facts) bool {
	switch t := t.(type) {
	case methodTest:
		return t.holds(r)
	case hostTest:
		return t.holds(r)
	case *prefixTest:
		return t.holds(r)
	case *valueTest:
		return t.holds(r)
	case *notTest:
		return t.holds(r)
	}
	return false // there are no others
}

func (a *alternative) hasRegex() bool {
	return slices.ContainsFunc(a.paths, func(p pathPattern) bool { return p.regex != nil })
}

func (a *alternative) matchesPath(path string) bool {
	for i := range a.paths {
		if a.paths[i].matches(path) {
			return true
		}
	}
	return len(a.paths) == 0
}

func (p *problems) alternatives(matches []Match, field string) []alternative {
	if len(matches) == 0 {
		return []alternative{{}}
	}
	list := make([]alternative, len(matches))
	for i := range matches {
		f := p.one(field, i)
		if len(matches) > 1 && matches[i].empty() && !p.broken(f) {
			p.addf(f, "is for all requests, so that the others of the list say nothing; accepted: one or more of %s", strings.Join(matchKeys, ", "))
		}
		list[i] = p.alternative(&matches[i], f)
	}
	return list
}

// empty reports whether nothing is given.
func (m *Match) empty() bool {
	return m.Method == nil && m.Path == nil && m.Host == nil && m.ClientIP == nil && m.Header == nil && m.Query == nil && m.Attributes == nil && m.Not == nil
}

// one returns the field of an entry of a list that can also be written without being one.
func (p *problems) one(field string, i int) string {
	if _, ok := p.config.where[at(field, i)]; !ok && p.config.where != nil {
		return field
	}
	return at(field, i)
}

func (p *problems) alternative(m *Match, field string) (a alternative) {
	a.paths = p.paths(m.Path, field+".path")
	if m.Method != nil {
		a.tests = append(a.tests, p.methods(m.Method, field+".method"))
	}
	if m.Host != nil {
		a.tests = append(a.tests, p.hosts(m.Host, field+".host"))
	}
	if m.ClientIP != nil {
		a.tests = append(a.tests, p.prefixes(m.ClientIP, field+".client_ip"))
	}
	p.named(m.Header, field+".header")
	p.named(m.Query, field+".query")
	p.named(m.Attributes, field+".attributes")
	for _, name := range sorted(m.Header) {
		f := field + ".header." + name
		if !isToken(name) || strings.EqualFold(name, "Host") {
			p.addf(f, "is not the name of a header; accepted: letters, digits and any of !#$%%&'*+-.^_`|~; a host is matched with host")
		}
		a.tests = append(a.tests, &valueTest{source{header, textproto.CanonicalMIMEHeaderKey(name)}, p.globs(m.Header[name], f)})
	}
	for _, name := range sorted(m.Query) {
		a.tests = append(a.tests, &valueTest{source{query, name}, p.globs(m.Query[name], field+".query."+name)})
	}
	for _, name := range sorted(m.Attributes) {
		a.tests = append(a.tests, &valueTest{source{attribute, name}, p.globs(m.Attributes[name], field+".attributes."+name)})
	}
	if len(m.Not) > 0 {
		a.tests = append(a.tests, p.not(m.Not, field+".not"))
	}
	return a
}

func (p *problems) not(matches []Match, field string) *notTest {
	n := &notTest{text: describe(matches)}
	for i := range matches {
		f := p.one(field, i)
		switch {
		case len(matches[i].Not) > 0:
			p.addf(f+".not", "%s; accepted: %s", notWithinNot, strings.Join(excludeKeys, ", "))
			continue
		case matches[i].empty() && !p.broken(f):
			p.addf(f, "is for all requests, so that the policy is for none; accepted: one or more of %s", strings.Join(excludeKeys, ", "))
		}
		n.none = append(n.none, p.alternative(&matches[i], f))
	}
	return n
}

const notWithinNot = "is within a not, which has none of its own"

// named notes a map that is given and empty.
func (p *problems) named(values map[string][]string, field string) {
	if values != nil && len(values) == 0 && !p.broken(field) {
		p.addf(field, "has no names; accepted: one or more, each with a value, such as {name: \"*\"}")
	}
}

// nonEmpty notes an empty list.
func (p *problems) nonEmpty(list []string, field string) {
	if len(list) == 0 {
		p.addf(field, "is an empty list; accepted: one or more")
	}
}

type methodTest []string

func (p *problems) methods(methods []string, field string) methodTest {
	p.nonEmpty(methods, field)
	t := make(methodTest, len(methods))
	for i, m := range methods {
		if f := p.one(field, i); !isToken(m) && !p.broken(f) {
			p.addf(f, "is %s; accepted: a method such as GET", short(m))
		}
		t[i] = strings.ToUpper(m)
	}
	return t
}

func (t methodTest) holds(r *facts) bool {
	return slices.ContainsFunc(t, func(m string) bool { return strings.EqualFold(m, r.Method) })
}
func (t methodTest) field() string         { return "method" }
func (t methodTest) want() string          { return strings.Join(t, " or ") }
func (t methodTest) found(r *facts) string { return present(r.Method, r.Method != "") }

type hostTest []string // "*.example.com" is for what is below

func (p *problems) hosts(hosts []string, field string) hostTest {
	p.nonEmpty(hosts, field)
	t := make(hostTest, len(hosts))
	for i, h := range hosts {
		f := p.one(field, i)
		if name := strings.TrimPrefix(h, "*."); (name == "" || strings.ContainsAny(name, "*/ ") || hostname(name) != name) && !p.broken(f) {
			p.addf(f, "is %s; accepted: a host without a port and without a dot at its end, such as example.com or *.example.com", short(h))
		}
		t[i] = strings.ToLower(h)
	}
	return t
}

func (t hostTest) holds(r *facts) bool {
	host := hostname(r.Host)
	for _, h := range t {
		below, wild := strings.CutPrefix(h, "*")
		if !wild && strings.EqualFold(h, host) {
			return true
		}
		if n := len(host) - len(below); wild && n > 0 && strings.EqualFold(below, host[n:]) {
			return true
		}
	}
	return false
}
func (t hostTest) field() string         { return "host" }
func (t hostTest) want() string          { return strings.Join(t, " or ") }
func (t hostTest) found(r *facts) string { return present(hostname(r.Host), r.Host != "") }

// hostname returns a host without its port, the brackets of an IPv6 address, and the dot that ends a full name.
func hostname(host string) string {
	if strings.HasPrefix(host, "[") {
		if end := strings.IndexByte(host, ']'); end > 0 {
			return host[1:end]
		}
	}
	if i := strings.IndexByte(host, ':'); i >= 0 && i == strings.LastIndexByte(host, ':') { // more are an IPv6 address
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

type prefixTest struct {
	prefixes []netip.Prefix
	text     string
}

func (p *problems) prefixes(texts []string, field string) *prefixTest {
	p.nonEmpty(texts, field)
	t := &prefixTest{text: strings.Join(texts, " or ")}
	for i, text := range texts {
		prefix, err := parsePrefix(text)
		if f := p.one(field, i); err != nil && !p.broken(f) {
			p.addf(f, "is %s; accepted: an address or a CIDR, such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32", short(text))
		}
		t.prefixes = append(t.prefixes, prefix)
	}
	return t
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return prefix, err
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < 96 {
			return prefix, fmt.Errorf("weir: %q has addresses of IPv4 and of IPv6", text)
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

func (t *prefixTest) holds(r *facts) bool {
	ip := address(r)
	return slices.ContainsFunc(t.prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}
func (t *prefixTest) field() string { return "client_ip" }
func (t *prefixTest) want() string  { return t.text }
func (t *prefixTest) found(r *facts) string {
	return present(address(r).String(), r.ClientIP.IsValid())
}

// address returns the address of who asks, without what does not tell one from another.
func address(r *facts) netip.Addr { return r.ClientIP.Unmap().WithZone("") }

// A valueTest is of a header, a parameter of the query or an attribute.
type valueTest struct {
	of   source
	list []glob
}

func (p *problems) globs(texts []string, field string) []glob {
	p.nonEmpty(texts, field)
	list := make([]glob, len(texts))
	for i, text := range texts {
		list[i] = newGlob(text)
	}
	return list
}

func (t *valueTest) holds(r *facts) bool {
	return t.of.any(r, func(v string) bool {
		for i := range t.list {
			if t.list[i].matches(v) {
				return true
			}
		}
		return false
	})
}

func (t *valueTest) field() string { return t.of.matchField() }

func (t *valueTest) want() string {
	var texts []string
	for _, g := range t.list {
		texts = append(texts, g.text)
	}
	return strings.Join(texts, " or ")
}

func (t *valueTest) found(r *facts) string {
	v, ok := t.of.first(r)
	return present(v, ok)
}

type notTest struct {
	none []alternative
	text string
}

func (t *notTest) holds(r *facts) bool {
	for i := range t.none {
		if t.none[i].matchesPath(r.Path) && t.none[i].matches(r) {
			return false
		}
	}
	return true
}
func (t *notTest) field() string       { return "not" }
func (t *notTest) want() string        { return "not " + t.text }
func (t *notTest) found(*facts) string { return t.text }

// describe writes matches for people.
func describe(matches []Match) string {
	var all []string
	for _, m := range matches {
		var one []string
		say := func(name string, values []string) {
			if values != nil {
				one = append(one, name+" "+strings.Join(values, " or "))
			}
		}
		say("method", m.Method)
		say("path", m.Path)
		say("host", m.Host)
		say("client_ip", m.ClientIP)
		for _, named := range []struct {
			kind   string
			values map[string][]string
		}{{"header ", m.Header}, {"query ", m.Query}, {"attribute ", m.Attributes}} {
			for _, name := range sorted(named.values) {
				say(named.kind+name, named.values[name])
			}
		}
		all = append(all, strings.Join(one, " and "))
	}
	return bounded(strings.Join(all, ", or "))
}

// present shows what a request has.
func present(value string, ok bool) string {
	if !ok {
		return "none"
	}
	return bounded(value)
}

// isToken reports whether HTTP takes text as the name of a header, a cookie or a method.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}
