package policy

import (
	"slices"
	"strings"
)

// An index finds the alternatives that match a request. Those that are for a path, or for all below one, are found by the request's path; the
// others are looked at one after the other.
type index struct {
	alternatives []indexed // in the order of their policies
	exact        map[string][]int32
	prefixes     *node
	others       []int32
}

// An indexed is an alternative of a policy.
type indexed struct {
	*alternative
	policy int32
}

// A node has what is for all paths that begin with its segments.
type node struct {
	all      []int32
	children map[string]*node
}

func newIndex(policies [][]alternative) *index {
	x := &index{exact: map[string][]int32{}, prefixes: &node{}}
	for p, list := range policies {
		for i := range list {
			x.add(indexed{&list[i], int32(p)})
		}
	}
	return x
}

func (x *index) add(a indexed) {
	n := int32(len(x.alternatives))
	x.alternatives = append(x.alternatives, a)
	if len(a.paths) == 0 {
		x.others = append(x.others, n)
	}
	for i := range a.paths {
		p := &a.paths[i]
		if p.exact() {
			x.exact[p.text] = append(x.exact[p.text], n)
			continue
		}
		segments, ok := p.prefix()
		if !ok {
			x.others = append(x.others, n)
			continue
		}
		at := x.prefixes
		for _, s := range segments {
			next := at.children[s.text]
			if next == nil {
				next = &node{}
				if at.children == nil {
					at.children = map[string]*node{}
				}
				at.children[s.text] = next
			}
			at = next
		}
		at.all = append(at.all, n)
	}
	x.others = slices.Compact(x.others)
}

// find appends the policies that match the request, in their order, each once.
func (x *index) find(r *facts, found []int32) []int32 {
	first := len(found)
	found = x.check(r, x.exact[r.Path], found)
	at, rest, more := x.prefixes, r.Path, true
	for {
		if len(at.all) > 0 {
			found = x.check(r, at.all, found)
		}
		if !more || len(at.children) == 0 {
			break
		}
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		if at = at.children[segment]; at == nil {
			break
		}
	}
	for _, n := range x.others {
		if a := &x.alternatives[n]; a.matchesPath(r.Path) && a.matches(r) {
			found = append(found, a.policy)
		}
	}
	if len(found)-first < 2 {
		return found
	}
	slices.Sort(found[first:])
	return found[:first+len(slices.Compact(found[first:]))]
}

// check appends the policies of those alternatives, of which the path is right, that match.
func (x *index) check(r *facts, list, found []int32) []int32 {
	for _, n := range list {
		if a := &x.alternatives[n]; a.matches(r) {
			found = append(found, a.policy)
		}
	}
	return found
}

// regexBound returns an error for a path beyond its bound that an enforced policy would match
// against a regular expression.
func (x *index) regexBound(rules []rule, r *facts) error {
	for i := range x.alternatives {
		a := &x.alternatives[i]
		if rules[a.policy].role == Enforced && a.hasRegex() && a.matches(r) {
			wrong := tooLong("path", len(r.Path), MaxRegexPath, "bytes")
			wrong.Accept += " for a regular expression"
			return wrong
		}
	}
	return nil
}
