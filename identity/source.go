package identity

import (
	"fmt"
	"net/http"
	"strings"
)

// A Source is one thing that a request tells of who sent it. The zero Source finds nothing.
type Source struct {
	name string
	find func(*http.Request) string
	err  error
}

// Func makes a Source of a function, which returns "" where a request has nothing. Sources that find different things need different names, which
// are a part of keys: letters, digits and any of -_.:/
func Func(name string, find func(*http.Request) string) Source {
	switch {
	case !isName(name):
		return refused("name", fmt.Sprintf("%.100q", name), "letters, digits and any of -_.:/, at most 128")
	case find == nil:
		return refused(name, "a nil function", "a function that returns what a request has, or an empty string")
	}
	return Source{name: name, find: find}
}

// String returns the name of the Source, such as header:X-Api-Key.
func (s Source) String() string { return s.name }

// Err returns what is wrong with how the Source was made, a [*SourceError], or nil. Such a Source finds nothing.
func (s Source) Err() error { return s.err }

// Value returns what the request has, or "" if that is nothing.
func (s Source) Value(r *http.Request) string {
	if s.find == nil {
		return ""
	}
	return s.find(r)
}

// First is the first of the sources of which the request has something. Its value tells which that was, so that nobody's header is anybody's address.
func First(sources ...Source) Source {
	var names []string
	for _, s := range sources {
		if s.err != nil {
			return s
		}
		names = append(names, s.name)
	}
	return Source{name: strings.Join(names, "|"), find: func(r *http.Request) string {
		for _, s := range sources {
			if v := s.Value(r); v != "" {
				return s.name + "=" + v
			}
		}
		return ""
	}}
}

// Everyone is the same for all requests.
func Everyone() Source { return Source{name: "all", find: func(*http.Request) string { return "all" }} }

// A SourceError says what can't be had of a request.
type SourceError struct{ Field, Value, Accept string }

// Error implements error.
func (e *SourceError) Error() string {
	return fmt.Sprintf("identity: %s is %s; accepted: %s", e.Field, e.Value, e.Accept)
}

func refused(field, value, accept string) Source {
	return Source{name: field, err: &SourceError{field, value, accept}}
}

func isName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("-_.:/", c) < 0 {
			return false
		}
	}
	return name != "" && len(name) <= maxComponent
}
