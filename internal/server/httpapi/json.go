package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/weirlimit/weir/internal/server/operation"
)

// object returns the members of a body that is one JSON object in UTF-8; example is one that would do.
func object(body []byte, example string) (*members, *Problem) {
	if !utf8.Valid(body) || unpairedSurrogate(body) {
		return nil, refuse("body", "not Unicode", "a JSON object in UTF-8")
	}
	accepted := "a JSON object such as " + example
	if !json.Valid(body) {
		return nil, refuse("body", "not JSON"+where(body), accepted)
	}
	m, ok := membersOf(body)
	if !ok {
		return nil, refuse("body", "not a JSON object", accepted)
	}
	return m, nil
}

// where says at which byte a body stops being JSON.
func where(body []byte) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, new(json.RawMessage))); ok {
		return " at byte " + strconv.FormatInt(syntax.Offset, 10)
	}
	return ""
}

// members goes through a JSON object that is known to be valid.
type members struct {
	name, value []byte // of the member that next found, as they are written
	rest        []byte
}

const space = " \t\r\n"

// membersOf returns the members of a valid JSON text, if that is an object.
func membersOf(text []byte) (*members, bool) {
	text = bytes.TrimLeft(text, space)
	return &members{rest: text[1:]}, text[0] == '{'
}

// next finds the next member.
func (m *members) next() bool {
	m.rest = bytes.TrimLeft(m.rest, space+",")
	if len(m.rest) == 0 || m.rest[0] != '"' {
		return false
	}
	m.name = m.cut(stringEnd(m.rest))
	m.rest = bytes.TrimLeft(m.rest, space+":")
	switch m.rest[0] {
	case '"':
		m.value = m.cut(stringEnd(m.rest))
	case '[', '{':
		m.value = m.cut(nestedEnd(m.rest))
	default:
		m.value = m.cut(bytes.IndexAny(m.rest, space+",}"))
	}
	return true
}

func (m *members) cut(n int) []byte {
	head := m.rest[:n]
	m.rest = m.rest[n:]
	return head
}

// nestedEnd returns the length of the valid array or object that b begins with.
func nestedEnd(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// stringEnd returns the length of the valid JSON string that b begins with.
func stringEnd(b []byte) int {
	for i := 1; ; i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// text reads a JSON string.
func text(name string, value []byte, accepted string) (string, *Problem) {
	if value[0] != '"' {
		return "", refuse(name, describe(value), accepted)
	}
	return unquote(value), nil
}

// whole reads a JSON number that is whole, in digits, and in a span.
func whole(name string, value []byte, in operation.Span, accepted string) (int64, *Problem) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || !in.Has(n) {
		return 0, refuse(name, describe(value), accepted)
	}
	return n, nil
}

// boolean reads a JSON boolean.
func boolean(name string, value []byte) (bool, *Problem) {
	yes := string(value) == "true"
	if !yes && string(value) != "false" {
		return false, refuse(name, describe(value), "true or false")
	}
	return yes, nil
}

// describe shows a value that was refused.
func describe(value []byte) string {
	switch value[0] {
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return string(value)
}

// unquote returns the text of a valid JSON string.
func unquote(quoted []byte) (s string) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	if err := json.Unmarshal(quoted, &s); err != nil { // it is valid: can't be
		return ""
	}
	return s
}

// unpairedSurrogate reports whether a string in the JSON has half of a \ud800-style pair. Decoders read every such half
// as the same replacement character, so that different keys would become one.
func unpairedSurrogate(body []byte) bool {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		unit := escapedUnit(body[i:])
		switch {
		case unit < 0xd800 || unit > 0xdfff:
			i++
		case unit > 0xdbff:
			return true
		default:
			if low := escapedUnit(body[i+6:]); low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		}
	}
	return false
}

// escapedUnit returns the number of the \uXXXX that b begins with, or 0 if it begins with none.
func escapedUnit(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(b[2:6]), 16, 64)
	if err != nil {
		return 0
	}
	return unit
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads the whole body into b, if it may be JSON by its headers and is not too large.
func readBody(w http.ResponseWriter, r *http.Request, b *bytes.Buffer) *Problem {
	if p := checkHeaders(r); p != nil {
		return p
	}
	if r.ContentLength > MaxBody {
		w.Header().Set("Connection", "close")
		return tooLarge(strconv.FormatInt(r.ContentLength, 10) + " bytes")
	}
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge("of more than " + strconv.Itoa(MaxBody) + " bytes")
	case err != nil:
		return refuse("body", "cut short", "a whole body, sent within "+readTimeout.String())
	}
	return nil
}

func tooLarge(value string) *Problem {
	p := refuse("body", value, "at most "+strconv.Itoa(MaxBody)+" bytes")
	p.Status = http.StatusRequestEntityTooLarge
	return p
}

// checkHeaders refuses what can't be the plain JSON that is read here, whatever the type says: curl -d says that it
// sends a form.
func checkHeaders(r *http.Request) *Problem {
	var p *Problem
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		p = refuse("Content-Encoding", encoding, "none")
	} else if kind := r.Header.Get("Content-Type"); !mayBeJSON(kind) {
		p = refuse("Content-Type", kind, "application/json")
	}
	if p != nil {
		p.Status = http.StatusUnsupportedMediaType
	}
	return p
}

func mayBeJSON(contentType string) bool {
	switch contentType {
	case "", "application/json", "application/x-www-form-urlencoded":
		return true
	}
	kind, params, _ := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return !strings.HasPrefix(kind, "multipart/") && (charset == "" || strings.EqualFold(charset, "utf-8"))
}
