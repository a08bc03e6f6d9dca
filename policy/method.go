package policy

import (
	"net/http"
	"slices"
	"strings"
)

// withHead returns the matches of a policy with HEAD beside each GET: servers answer HEAD by the
// handler of GET, which would otherwise run without the limit. A match keeps GET alone where HEAD is
// listed elsewhere: where an enforced policy with limits lists HEAD, and matches all else that this
// one does. In a not, GET stands for HEAD unless the match around it lists HEAD.
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

// limitsHead reports whether an enforced policy lists HEAD and matches all requests that m matches,
// whatever their method.
func (c *Config) limitsHead(m *Match) bool {
	narrow := *m
	narrow.Method = nil
	for i := range c.Policies {
		p := &c.Policies[i]
		if p.Mode == modeShadow || len(p.Limits) == 0 {
			continue
		}
		for j := range p.Match {
			if wide := p.Match[j]; lists(wide.Method, http.MethodHead) {
				if wide.Method = nil; wide.includes(&narrow) {
					return true
				}
			}
		}
	}
	return false
}

func lists(methods []string, method string) bool {
	return slices.ContainsFunc(methods, func(m string) bool { return strings.EqualFold(m, method) })
}
