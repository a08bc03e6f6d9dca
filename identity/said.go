package identity

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/textproto"
	"strings"
)

// maxBasic is the most bytes of a field of basic authentication that is looked at.
const maxBasic = 8 << 10

// Header is the value of a header field, of several lines the first: the one that http.Header.Get returns, and so the one that whoever looks at the field behind
// the limit sees as well. A client can send what it likes. Of Authorization, Proxy-Authorization and Cookie it is the SHA-256 (see [Hashed]); of other fields that are secret,
// such as keys of an API, Hashed makes it that.
func Header(name string) Source {
	if !isToken(name) || len(name) > maxName || withheld(name) {
		return refused("a header's name", quoted(name), "up to 128 letters, digits and any of !#$%&'*+-.^_`|~; not Host, which is Request.Host: use Func; nor Trailer and Transfer-Encoding, which servers take out")
	}
	name = textproto.CanonicalMIMEHeaderKey(name)
	s := Source{name: "header:" + escapeName(name), find: func(r *http.Request) string {
		if lines := r.Header[name]; len(lines) > 0 {
			return lines[0]
		}
		return ""
	}}
	switch name {
	case "Authorization", "Proxy-Authorization", "Cookie":
		return Hashed(s)
	}
	return s
}

// withheld reports whether a server of net/http takes a field out of the header of a request, so that nobody finds it there.
func withheld(field string) bool {
	return strings.EqualFold(field, "Host") || strings.EqualFold(field, "Trailer") || strings.EqualFold(field, "Transfer-Encoding")
}

// Cookie is the SHA-256 (see [Hashed]) of the value of a cookie, of several the first, which is the one that http.Request.Cookie returns. A client can send what it likes.
func Cookie(name string) Source {
	if !isToken(name) || len(name) > maxName {
		return refused("a cookie's name", quoted(name), "up to 128 letters, digits and any of !#$%&'*+-.^_`|~")
	}
	return Hashed(Source{name: "cookie:" + escapeName(name), find: func(r *http.Request) string {
		c, err := r.Cookie(name)
		if err != nil {
			return ""
		}
		return c.Value
	}})
}

// BasicUser is the user of basic authentication, as the client says it: nobody has looked at the password. A field of more than 8 KiB has none.
func BasicUser() Source {
	return Source{name: "basic_user", find: func(r *http.Request) string {
		if len(r.Header.Get("Authorization")) > maxBasic {
			return ""
		}
		user, _, _ := r.BasicAuth()
		return user
	}}
}

// Hashed is a source's value by its SHA-256, in 43 letters, digits, - and _. Keys are seen: in metrics, logs and stores. What nobody may see there should not be in them. A value
// that can be guessed can be guessed from its hash as well: that is for long random ones, such as the keys of an API.
func Hashed(s Source) Source {
	if s.Err() != nil {
		return s
	}
	return Source{name: s.name, client: s.client, find: func(r *http.Request) string {
		v := s.find(r)
		if v == "" {
			return ""
		}
		return Hash(v)
	}}
}

// Hash returns the SHA-256 of a value in 43 letters, digits, - and _, as in [Hashed].
func Hash(value string) string {
	sum := sha256.Sum256([]byte(value))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// escapeName writes what the names of sources don't have as %XX.
func escapeName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if isName(string(c)) {
			b.WriteByte(c)
		} else {
			writeEscaped(&b, c)
		}
	}
	return b.String()
}
