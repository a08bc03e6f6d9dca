package policy

import (
	"net/http"
	"slices"
	"strings"
)

// withHead returns the matches of a policy with HEAD beside each GET: servers answer HEAD by the
// handler of GET, which would otherwise run without the limit. A match keeps GET alone where HEAD
// is listed elsewhere: where an enforced policy with limits lists HEAD, is not for these GETs, and
// matches all requests of the match. In a not, GET includes HEAD unless the surrounding match lists
// HEAD.
func (c *Config) withHead(policy int) []Match {
	matches := slices.Clone(c.Policies[policy].Match)
	for i := range matches {
		m := &matches[i]
		m.Not = slices.Clone(m.Not)
		for j := range m.Not {
			if n := &m.Not[j]; lists(n.Method, http.MethodGet) && !lists(m.Method, http.MethodHead) {
				n.Method = addHead(n.Method)
			}
		}
		if lists(m.Method, http.MethodGet) && !c.limitsHead(&c.Policies[policy].Match[i]) {
			m.Method = addHead(m.Method)
		}
	}
	return matches
}

func addHead(methods []string) []string {
	if lists(methods, http.MethodHead) {
		return methods
	}
	i := slices.IndexFunc(methods, func(m string) bool { return strings.EqualFold(m, http.MethodGet) })
	return slices.Insert(slices.Clone(methods), i+1, http.MethodHead)
}

// limitsHead reports whether an enforced policy lists HEAD and matches all requests of m, whatever
// their method. A policy that matches these requests by GET, too, does not replace m: a GET is
// charged to both, and so is a HEAD.
func (c *Config) limitsHead(m *Match) bool {
	narrow := *m
	narrow.Method = nil
	return slices.ContainsFunc(c.Policies, func(p Policy) bool {
		return p.Mode != modeShadow && len(p.Limits) > 0 &&
			p.includes(&narrow, func(methods []string) bool { return lists(methods, http.MethodHead) }) &&
			!p.includes(&narrow, func(methods []string) bool { return methods == nil || lists(methods, http.MethodGet) })
	})
}

// includes reports whether a match of the policy has the methods and includes m, which has none.
func (p *Policy) includes(m *Match, has func(methods []string) bool) bool {
	return slices.ContainsFunc(p.Match, func(wide Match) bool {
		ok := has(wide.Method)
		wide.Method = nil
		return ok && wide.includes(m)
	})
}

func lists(methods []string, method string) bool {
	return slices.ContainsFunc(methods, func(m string) bool { return strings.EqualFold(m, method) })
}
