package httpapi

import "bytes"

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
