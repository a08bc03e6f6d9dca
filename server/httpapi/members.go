package httpapi

import "bytes"

// members goes through a JSON object that is known to be valid. No value that weir accepts has others inside, so that of an
// array or an object only the first byte is given, and the rest is not looked for.
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

// next finds the next member. There is none after one whose value is an array or an object.
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
		m.value, m.rest = m.rest[:1], nil
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
