package identity

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxComponent is the most bytes of a part of a key; of what is longer, its hash is the part.
const maxComponent = 128

// A Key makes the text under which a request is counted, of what its sources find: 1 to 8 of them.
type Key []Source

// Of returns the request's key: what the sources find, with commas between. - stands for nothing. Commas and what can't be printed are written as %XX, and
// a part of more than 128 bytes is # and its SHA-256, so that no two tuples have one key.
func (k Key) Of(r *http.Request) string {
	if len(k) == 1 {
		return Encode(k[0].Value(r))
	}
	var b strings.Builder
	b.Grow(64)
	for i, s := range k {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(Encode(s.Value(r)))
	}
	return b.String()
}

// Err returns what is wrong with the Key, or with the first of its sources that has something wrong, a [*SourceError], or nil.
func (k Key) Err() error {
	if len(k) == 0 || len(k) > maxSources {
		return &SourceError{"a key", fmt.Sprintf("of %d sources", len(k)), fmt.Sprintf("1 to %d; Everyone counts all as one", maxSources)}
	}
	for _, s := range k {
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// ClientIP returns the ClientIP of the first source of an address, or nil.
func (k Key) ClientIP() *ClientIP {
	for _, s := range k {
		if s.client != nil {
			return s.client
		}
	}
	return nil
}

// Encode writes a part of a key, so that parts with commas between can be told apart, and from all others. "" is -. What can't be printed is what unicode.IsPrint says, and bytes
// that are no UTF-8: controls, spaces other than that of ASCII, and marks that change the direction of text are written byte by byte, as %E2%80%AE.
func Encode(value string) string {
	switch value {
	case "":
		return "-"
	case "-":
		return "%2D"
	}
	if len(value) <= maxComponent && plain(value) {
		return value
	}
	var b strings.Builder
	for rest := value; rest != "" && b.Len() <= maxComponent; {
		c, size := utf8.DecodeRuneInString(rest)
		if c == utf8.RuneError && size == 1 || !unicode.IsPrint(c) || c == '%' || c == ',' || c == '#' {
			for i := range size {
				writeEscaped(&b, rest[i])
			}
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	if b.Len() > maxComponent {
		return "#" + Hash(value)
	}
	return b.String()
}

func writeEscaped(b *strings.Builder, c byte) {
	const digits = "0123456789ABCDEF"
	b.Write([]byte{'%', digits[c>>4], digits[c&15]})
}

func plain(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' || c >= 0x7f || c == '%' || c == ',' || c == '#' {
			return false
		}
	}
	return true
}
