package identity

import (
	"fmt"
	"net/http"
	"strings"
)

// Bounds on sources.
const (
	maxName    = 128  // bytes of a name, also of a header's or a cookie's
	maxNames   = 1024 // bytes of the names of the sources of a First
	maxSources = 8    // of a Key, and of a First
)

// A Source is one thing that a request tells of who sent it. The zero Source finds nothing, and its Err says so.
type Source struct {
	name   string
	find   func(*http.Request) string
	err    error
	client *ClientIP // nil: the source is not of a client's address
}

// Func makes a Source of a function, which returns "" where a request has nothing, and may be called by many goroutines at once. Sources that find different things
// need different names, which are a part of keys: up to 128 letters, digits and any of -_.:/ in ASCII.
func Func(name string, find func(*http.Request) string) Source {
	switch {
	case !isName(name):
		return refused("a source's name", quoted(name), "letters, digits and any of -_.:/, at most 128")
	case find == nil:
		return refused(name, "a nil function", "a function that returns what a request has, or an empty string")
	}
	return Source{name: name, find: find}
}

// String returns the name of the Source, such as header:X-Api-Key.
func (s Source) String() string { return s.name }

// Err returns what is wrong with how the Source was made, a [*SourceError], or nil. Such a Source finds nothing.
func (s Source) Err() error {
	if s.err == nil && s.find == nil {
		return &SourceError{"a source", "the zero Source, which finds nothing", "what Func, Header and the like return"}
	}
	return s.err
}

// Value returns what the request has, or "" if that is nothing.
func (s Source) Value(r *http.Request) string {
	if s.find == nil {
		return ""
	}
	return s.find(r)
}

// First is the first of the sources, up to 8 of different names, of which the request has something. Its value tells which that was, so that nobody's header is
// anybody's address: header:X-Api-Key=k1, or client_ip=192.0.2.7.
func First(sources ...Source) Source {
	if len(sources) == 0 || len(sources) > maxSources {
		return refused("First", fmt.Sprintf("of %d sources", len(sources)), fmt.Sprintf("1 to %d", maxSources))
	}
	names, sources := make([]string, 0, len(sources)), append([]Source(nil), sources...)
	seen := map[string]bool{}
	var client *ClientIP
	for _, s := range sources {
		if err := s.Err(); err != nil {
			return Source{name: "First", err: err}
		}
		if seen[s.name] {
			return refused("First", "of two sources called "+s.name, "sources of different names, so that their values can be told apart; Func gives a source another one")
		}
		seen[s.name] = true
		if client == nil {
			client = s.client
		}
		names = append(names, s.name)
	}
	name := strings.Join(names, "|")
	if len(name) > maxNames {
		return refused("First", fmt.Sprintf("of sources whose names have %d bytes", len(name)), fmt.Sprintf("at most %d", maxNames))
	}
	return Source{name: name, client: client, find: func(r *http.Request) string {
		for _, s := range sources {
			if v := s.find(r); v != "" {
				return s.name + "=" + v
			}
		}
		return ""
	}}
}

// Everyone is the same for all requests.
func Everyone() Source { return Source{name: "all", find: func(*http.Request) string { return "all" }} }

// A SourceError says what can't be had of a request, or trusted of one.
type SourceError struct{ Field, Value, Accept string }

// Error implements error.
func (e *SourceError) Error() string {
	return fmt.Sprintf("identity: %s is %s; accepted: %s", e.Field, e.Value, e.Accept)
}

func refused(field, value, accept string) Source {
	return Source{name: field, err: &SourceError{field, value, accept}}
}

// quoted shows a text of a configuration.
func quoted(text string) string {
	if text == "" {
		return "empty"
	}
	return fmt.Sprintf("%.100q", text)
}

func isName(name string) bool {
	for _, c := range []byte(name) {
		if !isAlphanumeric(c) && strings.IndexByte("-_.:/", c) < 0 {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// isToken reports whether HTTP takes a text as the name of a header or a cookie.
func isToken(text string) bool {
	for _, c := range []byte(text) {
		if !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
