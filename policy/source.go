package policy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
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
func (s source) any(r *Request, f func(string) bool) bool {
	switch s.kind {
	case header:
		return slices.ContainsFunc(r.Header[s.name], f)
	case query:
		return anyParameter(r.RawQuery, s.name, f)
	case attribute:
		v, ok := r.Attributes[s.name]
		return ok && f(v)
	case cookie:
		for _, c := range (&http.Request{Header: r.Header}).CookiesNamed(s.name) {
			if f(c.Value) {
				return true
			}
		}
	}
	return false
}

// first returns the first value, which is the one that Header.Get and the like return.
func (s source) first(r *Request) (value string, ok bool) {
	ok = s.any(r, func(v string) bool {
		value = v
		return true
	})
	return value, ok
}

// anyParameter looks at the values of a parameter as package net/url reads them: what it can't read is not there.
func anyParameter(rawQuery, name string, f func(string) bool) bool {
	for more := rawQuery != ""; more; {
		var pair string
		pair, rawQuery, more = strings.Cut(rawQuery, "&")
		if pair == "" || strings.Contains(pair, ";") {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err != nil || key != name {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil && f(value) {
			return true
		}
	}
	return false
}
