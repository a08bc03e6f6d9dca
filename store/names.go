package store

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// DefaultPrefix is the prefix of names that are given none.
const DefaultPrefix = "weir"

// Bounds on names, in bytes. All of a name is at most 250, which is what memcached takes.
const (
	maxPrefix = 32
	maxPart   = 96 // of the key and of the limit's identity; what is longer is hashed
)

// layout is the version of what states look like under a name. It is part of the name, so that versions of weir
// that keep their states differently never read one another's.
const layout = "1"

// Names are the names under which a shared engine keeps the states of one binding, such as
//
//	weir:1:{user:42}:login
//	weir:1:{user:42}::100/1m
//
// which is prefix, layout, {key}, and the name of the limiter; or an empty one and the limit, of a limiter that has no name. Where limits of one name share
// a debt of time it is login:debt. They are of printable ASCII without spaces, for people
// to read. The key is in braces, and there are no others, so that Redis Cluster keeps all limits of one key in one slot.
//
// No two tuples have the same name. Bytes that are not printable ASCII, and those with a meaning here, are written as
// %XX, and a space in a limit's text as +. An empty key is {%}. A key of which that would make more than 96 bytes is written as # and
// its SHA-256, and so is a limit's identity.
type Names struct{ before, after string }

// NewNames returns the names of a binding's states. The prefix separates programs on one engine. It
// has up to 32 letters, digits, and any of -_.:/; "" means DefaultPrefix.
func NewNames(prefix string, spec Spec) (Names, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := CheckPrefix(prefix); err != nil {
		return Names{}, err
	}
	limit := ":" + strings.ReplaceAll(spec.Limit.Canonical().String(), " ", "+")
	switch {
	case spec.TimeDebt:
		limit = ":debt" // no limit reads so
	case spec.Name != "":
		limit = "" // what is kept says of which limit it is
	}
	identity := escape(spec.Name, ":") + limit
	if len(identity) > maxPart {
		identity = hashed(spec.Name + "\x00" + limit)
	}
	return Names{before: prefix + ":" + layout + ":{", after: "}:" + identity}, nil
}

// CheckPrefix reports what is wrong with a prefix that NewNames would refuse.
func CheckPrefix(prefix string) error {
	ok := len(prefix) <= maxPrefix
	for _, c := range []byte(prefix) {
		ok = ok && (isAlphanumeric(c) || strings.IndexByte("-_.:/", c) >= 0)
	}
	if !ok {
		return fmt.Errorf("weir: prefix is %.50q; accepted: up to %d letters, digits, and any of -_.:/", prefix, maxPrefix)
	}
	return nil
}

// Name returns the name of the key's state.
func (n Names) Name(key string) string {
	if plain(key) {
		return n.before + key + n.after
	}
	return n.before + part(key) + n.after
}

// Pattern matches the names of all states with a prefix, as a pattern of Redis' ACLs does.
func Pattern(prefix string) string {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return prefix + ":" + layout + ":*"
}

func plain(key string) bool {
	if key == "" || len(key) > maxPart {
		return false
	}
	for i := range len(key) {
		if !literal(key[i]) {
			return false
		}
	}
	return true
}

func part(key string) string {
	if key == "" {
		return "%"
	}
	if len(key) <= maxPart {
		if escaped := escape(key, ""); len(escaped) <= maxPart {
			return escaped
		}
	}
	return hashed(key)
}

// hashed is marked with a # that nothing else begins with.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// escape writes bytes that are not literal, and those of also, as %XX.
func escape(text, also string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; literal(c) && strings.IndexByte(also, c) < 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func literal(c byte) bool {
	return c > ' ' && c < 0x7f && c != '%' && c != '{' && c != '}' && c != '#'
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// CompileMicroseconds prepares the limit of a spec for an engine that counts in microseconds.
func CompileMicroseconds(spec Spec) (*algorithm.Program, error) {
	if spec.TimeDebt {
		return algorithm.CompileShared(spec.Limit, time.Microsecond)
	}
	return algorithm.Compile(spec.Limit, time.Microsecond)
}
