package policy

import (
	"net/http"
	"slices"
)

// A sourceKind is what of a request a value is taken from, as the configuration calls it.
type sourceKind string

const (
	header    sourceKind = "header"
	query     sourceKind = "query"
	cookie    sourceKind = "cookie"
	attribute sourceKind = "attribute"
)

// A source is something of which a request may have several values, by name.
type source struct {
	kind sourceKind
	name string // of a header in its canonical form
}

func (s source) matchField() string {
	if s.kind == attribute {
		return "attributes." + s.name
	}
	return string(s.kind) + "." + s.name
}

// any reports whether f is true of one of the values.
func (s source) any(r *facts, f func(string) bool) bool {
	switch s.kind {
	case header:
		return slices.ContainsFunc(r.field(s.name), f)
	case query:
		return slices.ContainsFunc(r.parameters()[s.name], f)
	case attribute:
		v, ok := r.attribute(s.name)
		return ok && f(v)
	case cookie:
		return slices.ContainsFunc(r.cookies(), func(c *http.Cookie) bool { return c.Name == s.name && f(c.Value) })
	}
	return false
}

// first returns the first value, which is the one that Header.Get and the like return.
func (s source) first(r *facts) (value string, ok bool) {
	ok = s.any(r, func(v string) bool {
		value = v
		return true
	})
	return value, ok
}
