package replay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// maxKeyPart is the longest field that a key holds whole, in bytes. A longer one is held as its beginning and its
// SHA-256, so that a log of long paths can't fill the memory.
const maxKeyPart = 1024

// A Key says what tells one client from another: one or more fields of a log line. The zero value is the client's
// address.
type Key struct{ fields []string }

// Fields lists the names that a Key is made of.
//
//	ip          the client, an address or a host name, as the log has it
//	user        the user that authenticated
//	method      the request's method
//	path        the request's path, without its query
//	host        the virtual host that was asked, with its port (virtual host format only)
//	user-agent  the client's program (not in common format)
func Fields() []string { return []string{"ip", "user", "method", "path", "host", "user-agent"} }

// ParseKey reads a key's text: names from Fields, with commas between them, as in "ip" or "ip,path".
func ParseKey(text string) (Key, error) {
	fields := strings.Split(text, ",")
	for i, f := range fields {
		fields[i] = strings.TrimSpace(f)
		if !slices.Contains(Fields(), fields[i]) || slices.Contains(fields[:i], fields[i]) {
			return Key{}, fmt.Errorf("replay: key is %q; accepted: one or more of %s, each once, with commas between",
				clip(text, 100), strings.Join(Fields(), ", "))
		}
	}
	return Key{fields}, nil
}

// String is the text that ParseKey reads.
func (k Key) String() string { return strings.Join(k.names(), ",") }

// UnmarshalText reads the text as ParseKey does.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}

func (k Key) names() []string {
	if len(k.fields) == 0 {
		return []string{"ip"}
	}
	return k.fields
}

// of appends the key of a line to buffer. Each field but the last is preceded by its length, so that no two tuples
// of fields are one key. It reports whether each of the fields was there; one that wasn't is "-".
func (k Key) of(buffer []byte, l *line) (key []byte, whole bool) {
	names := k.names()
	whole = true
	for i, name := range names {
		value := l.field(name)
		if len(value) == 0 {
			value, whole = []byte("-"), false
		} else if len(value) > maxKeyPart {
			value = digest(value)
		}
		if i < len(names)-1 {
			buffer = binary.AppendUvarint(buffer, uint64(len(value)))
		}
		buffer = append(buffer, value...)
	}
	return buffer, whole
}

// split undoes of.
func (k Key) split(key string) []string {
	parts := make([]string, 0, len(k.names()))
	for range len(k.names()) - 1 {
		n, width := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen64)]))
		end := width + int(n)
		parts, key = append(parts, key[width:end]), key[end:]
	}
	return append(parts, key)
}

func (l *line) field(name string) []byte {
	switch name {
	case "user":
		return l.user
	case "method":
		return l.method
	case "path":
		return l.path
	case "host":
		return l.host
	case "user-agent":
		return l.agent
	}
	return l.address
}

// digest is longer than any field that is held whole, so that it equals none.
func digest(value []byte) []byte {
	sum := sha256.Sum256(value)
	return hex.AppendEncode(append(slices.Clip(value[:maxKeyPart]), "... sha256:"...), sum[:])
}
