package policy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Bounds on a request. Policies refuse a request with a method, host or path beyond them with a
// [RequestError], and a query, header, cookie or attribute beyond them where an enforced policy
// reads it: a request too long for a match is never decided as a request without a policy.
const (
	MaxMethod     = 128      // bytes
	MaxHost       = 1 << 10  // bytes
	MaxPath       = 8 << 10  // bytes, decoded
	MaxRegexPath  = 2 << 10  // bytes of a path that a regular expression is matched against
	MaxQuery      = 32 << 10 // bytes, as in the URL
	MaxParameters = 1000     // parameters of the query, cookies, or values of one header
	MaxValue      = 32 << 10 // bytes of one header's values, of the cookies, or of an attribute
)

// facts are a request and its parsed parts. Each part is parsed at most once for all policies, when
// the first of them reads it.
type facts struct {
	*Request

	query  url.Values
	jar    []*http.Cookie
	parsed struct{ query, jar bool }
	// codes has the encoded long values of the first sources, each made once for all policies. An
	// array keeps Requests off the heap.
	codes [8]code
	// wrong has the first part beyond its bound, if any. The part has no values. A list keeps
	// Requests off the heap.
	wrong []*RequestError
}

// A code is the encoded value of a source.
type code struct{ source, text string }

// bounds returns an error for a method, host or path beyond its bound.
func (r *Request) bounds() error {
	for _, part := range [...]struct {
		name string
		size int
		most int
	}{{"method", len(r.Method), MaxMethod}, {"host", len(r.Host), MaxHost}, {"path", len(r.Path), MaxPath}} {
		if part.size > part.most {
			return tooLong(part.name, part.size, part.most, "bytes")
		}
	}
	return nil
}

func tooLong(field string, size, most int, unit string) *RequestError {
	return &RequestError{field, fmt.Sprintf("%d %s", size, unit), fmt.Sprintf("at most %d %s", most, unit)}
}

// within reports whether a size is within its bound, and records the first error.
func (f *facts) within(kind, name string, size, most int, unit string) bool {
	if size > most && len(f.wrong) == 0 {
		f.wrong = []*RequestError{tooLong(strings.TrimSuffix(kind+" "+name, " "), size, most, unit)}
	}
	return size <= most
}

// field returns the values of a header.
func (f *facts) field(name string) []string {
	values := f.Header[name]
	if len(values) == 0 || !f.within("header", name, len(values), MaxParameters, "values") {
		return nil
	}
	size := 0
	for _, v := range values {
		size += len(v)
	}
	if !f.within("header", name, size, MaxValue, "bytes") {
		return nil
	}
	return values
}

// parameters returns the parameters of the query, as package net/url reads them: without unreadable
// parameters.
func (f *facts) parameters() url.Values {
	if !f.parsed.query {
		f.parsed.query = true
		if f.within("query", "", len(f.RawQuery), MaxQuery, "bytes") &&
			f.within("query", "", 1+strings.Count(f.RawQuery, "&"), MaxParameters, "parameters") {
			f.query, _ = url.ParseQuery(f.RawQuery)
		}
	}
	return f.query
}

// cookies returns the cookies.
func (f *facts) cookies() []*http.Cookie {
	if !f.parsed.jar {
		f.parsed.jar = true
		values := f.field("Cookie")
		n := len(values)
		for _, v := range values {
			n += strings.Count(v, ";")
		}
		if n > 0 && f.within("header", "Cookie", n, MaxParameters, "cookies") {
			f.jar = (&http.Request{Header: http.Header{"Cookie": values}}).Cookies()
		}
	}
	return f.jar
}

// attribute returns an attribute.
func (f *facts) attribute(name string) (value string, ok bool) {
	value, ok = f.Attributes[name]
	return value, ok && f.within("attribute", name, len(value), MaxValue, "bytes")
}
