package policy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// chosenByClient reports whether a client can give the source any value, and so invent keys. The
// path does not count: it selects the resource. For the method, see choosesMethod.
func (s keySource) chosenByClient() bool {
	switch s.of.kind {
	case header, query, cookie:
		return true
	}
	return s.isFact("host")
}

// isFact reports whether the source is a fact about each request: method, host or path.
func (s keySource) isFact(name string) bool { return strings.TrimPrefix(s.text, hashPrefix) == name }

// choosesMethod reports whether the policy matches requests of any method. Handlers of net/http
// serve methods that a client makes up, unless they are registered for some.
func (c *Policy) choosesMethod() bool {
	return len(c.Match) == 0 || slices.ContainsFunc(c.Match, func(m Match) bool { return m.Method == nil })
}

// choosesKey reports whether a client of the policy can give a source of its key any value.
func (c *Policy) choosesKey(s keySource) bool {
	return s.chosenByClient() || s.isFact("method") && c.choosesMethod()
}

// warnChosen warns about policies that a client avoids, or whose budget a client renews, by a field
// of its own. A companion bounds both, without a warning: a policy for these requests under
// addresses or attributes.
func (p *problems) warnChosen(v *inventory) {
	var companions []*Policy
	for i := range v.rules {
		if c := &p.config.Policies[i]; v.rules[i].boundsEveryClient(c) {
			companions = append(companions, c)
		}
	}
	for i := range v.rules {
		field, c := at("policies", i), &p.config.Policies[i]
		p.warnMatch(companions, c, field+".match")
		p.warnKey(companions, &v.rules[i], c, field)
		p.warnPlans(&v.rules[i], c, field)
		if from := v.rules[i].cost.from; from != nil && from.kind == header {
			p.warnf(field+".cost", "is read from a header, and the client may always send 1; accepted without a warning: attribute:name")
		}
	}
}

func (p *problems) warnMatch(companions []*Policy, c *Policy, field string) {
	for i := range c.Match {
		m, f := &c.Match[i], p.one(field, i)
		if m.Host == nil && m.Header == nil && m.Query == nil && len(m.Not) == 0 {
			continue
		}
		open := *m // without the fields of the client's choice
		open.Host, open.Header, open.Query = nil, nil, nil
		open.Not = slices.DeleteFunc(slices.Clone(m.Not), func(n Match) bool { return n.chosenByClient() })
		if includesOne(c.Match, &open) || hasCompanion(companions, []Match{open}) {
			continue
		}
		for j := range m.Not {
			if n := &m.Not[j]; n.chosenByClient() {
				p.warnf(p.one(f+".not", j), "excludes requests by a field that every client can send; "+
					"accepted without a warning: client_ip, or an attribute that the caller has verified")
			}
		}
		if m.Host != nil {
			p.warnf(f+".host", "is chosen by the client, unless the server refuses all other hosts, and the client escapes the limits by "+
				"another value; accepted without a warning: a policy beside this one that matches without it and has the key client_ip")
		}
		for _, name := range sorted(m.Header) {
			p.warnSelects(f + ".header." + name)
		}
		for _, name := range sorted(m.Query) {
			p.warnSelects(f + ".query." + name)
		}
	}
}

func (p *problems) warnSelects(field string) {
	p.warnf(field, "is chosen by the client, which escapes the limits by another value; "+
		"accepted without a warning: an attribute that the caller has verified, or a policy beside this one "+
		"that matches without it and has the key client_ip")
}

func (p *problems) warnKey(companions []*Policy, r *rule, c *Policy, field string) {
	if !r.key.chosenByClient(c) || hasCompanion(companions, c.Match) {
		return
	}
	for i, part := range r.key {
		n := slices.IndexFunc(part, c.choosesKey)
		if n < 0 {
			continue
		}
		listed := ""
		if part[n].isFact("method") {
			listed = "a match that lists the methods, "
		}
		p.warnf(p.one(field+".key", i), "has %s, which the client chooses: each value has a budget of its own; "+
			"accepted without a warning: %sclient_ip, an attribute that the caller has verified, "+
			"or a policy beside this one with the same match and the key client_ip", part[n].text, listed)
	}
}

// warnPlans warns about plans by fields without a secret.
func (p *problems) warnPlans(r *rule, c *Policy, field string) {
	n := slices.IndexFunc(r.client, func(s keySource) bool { return s.chosenByClient() && !s.hash })
	if r.plans == nil || n < 0 {
		return
	}
	f := field + ".client"
	if c.Client == "" {
		f = p.one(field+".key", 0)
	}
	p.warnf(f, "has %s, by which a client chooses its plan; accepted without a warning: hash:%[1]s if it is a secret, "+
		"such as an API key, or an attribute that the caller has verified", r.client[n].text)
}

// chosenByClient reports whether a client can choose a part of the key of the policy.
func (m keyMaker) chosenByClient(c *Policy) bool {
	return slices.ContainsFunc(m, func(part keyPart) bool { return slices.ContainsFunc(part, c.choosesKey) })
}

// boundsEveryClient reports whether the policy limits each matching request, under a key beyond the
// client's choice.
func (r *rule) boundsEveryClient(c *Policy) bool {
	return r.role == Enforced && len(r.limits.limits) > 0 && !r.key.chosenByClient(c)
}

// chosenByClient reports whether every client can send a matching request.
func (m *Match) chosenByClient() bool {
	return (m.Header != nil || m.Query != nil || m.Host != nil) && m.ClientIP == nil && m.Attributes == nil
}

// hasCompanion reports whether one of the policies matches all these requests.
func hasCompanion(companions []*Policy, matches []Match) bool {
	return slices.ContainsFunc(companions, func(c *Policy) bool { return includesAll(c.Match, matches) })
}

// includesAll reports whether the wide list matches all requests of the narrow list. It compares
// texts, and may return a false negative.
func includesAll(wide, narrow []Match) bool {
	if len(narrow) == 0 {
		return includesOne(wide, &Match{})
	}
	return !slices.ContainsFunc(narrow, func(m Match) bool { return !includesOne(wide, &m) })
}

func includesOne(wide []Match, narrow *Match) bool {
	return len(wide) == 0 || slices.ContainsFunc(wide, func(m Match) bool { return m.includes(narrow) })
}

// includes reports whether m matches all requests of narrow, as includesAll does.
func (m *Match) includes(narrow *Match) bool {
	within := func(wide, narrow []string) bool {
		return wide == nil || narrow != nil && !slices.ContainsFunc(narrow, func(s string) bool { return !slices.Contains(wide, s) })
	}
	named := func(wide, narrow map[string][]string) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(wide)), func(name string) bool { return !within(wide[name], narrow[name]) })
	}
	for i := range m.Not {
		if !slices.ContainsFunc(narrow.Not, func(n Match) bool { return reflect.DeepEqual(n, m.Not[i]) }) {
			return false
		}
	}
	return within(m.Method, narrow.Method) && pathsInclude(m.Path, narrow.Path) &&
		within(m.Host, narrow.Host) && within(m.ClientIP, narrow.ClientIP) &&
		named(m.Header, narrow.Header) && named(m.Query, narrow.Query) && named(m.Attributes, narrow.Attributes)
}

// pathsInclude reports whether the wide patterns match all paths of the narrow patterns, as
// includesAll does.
func pathsInclude(wide, narrow []string) bool {
	if len(wide) == 0 || slices.Contains(wide, "**") {
		return true
	}
	return len(narrow) > 0 && !slices.ContainsFunc(narrow, func(path string) bool {
		return !slices.ContainsFunc(wide, func(pattern string) bool {
			below, deep := strings.CutSuffix(pattern, "/**")
			return pattern == path || deep && !strings.Contains(below, "*") && !strings.HasPrefix(pattern, regexPrefix) &&
				(path == below || strings.HasPrefix(path, below+"/"))
		})
	})
}
