package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weirlimit/weir/identity"
)

// maxKeyPart is the longest field that a key holds whole, in bytes. A longer one is held as its beginning and its
// SHA-256, so that a log of long paths can't fill the memory.
const maxKeyPart = 1024

// clientIP is the field of the zero Key.
const clientIP = "client_ip"

// A Key lists the fields of a log line that identify a client. The zero value is the client's
// address, client_ip.
type Key struct{ fields []field }

// A field is one part of a Key.
type field struct {
	name   string
	v4, v6 int // significant bits of an address; 0 for other fields
}

// Fields lists the names of a Key's fields.
//
//	client_ip   the client's address; of IPv6 its first 64 bits, as in policies. client_ip/48 counts other bits of IPv6,
//	            client_ip/24/64 bits of IPv4 and IPv6. A host name in place of an address is taken as it is
//	user        the user that authenticated
//	method      the request's method
//	path        the request's path, without its query
//	host        the virtual host that was asked, with its port (virtual host format only)
//	user-agent  the client's program (not in common format)
func Fields() []string { return []string{clientIP, "user", "method", "path", "host", "user-agent"} }

// ParseKey reads a key's text: names from Fields with commas between them, such as "client_ip" or
// "client_ip/56,path".
func ParseKey(text string) (Key, error) {
	var k Key
	for name := range strings.SplitSeq(text, ",") {
		f, ok := parseField(strings.TrimSpace(name))
		if !ok || slices.Contains(k.fields, f) {
			guess := ""
			if f.name == "ip" {
				guess = "; did you mean client_ip?"
			}
			return Key{}, fmt.Errorf("replay: key is %q; accepted: one or more of %s, each once, with commas between, and client_ip/48 or client_ip/24/64 for other bits%s",
				clip(text, 100), strings.Join(Fields(), ", "), guess)
		}
		k.fields = append(k.fields, f)
	}
	return k, nil
}

func parseField(name string) (f field, ok bool) {
	f.name = name
	if f.v4, f.v6, ok = identity.ParseNetwork(name); ok {
		return f, true
	}
	return f, slices.Contains(Fields(), name)
}

// String is the text that ParseKey reads.
func (k Key) String() string { return strings.Join(k.names(), ",") }

// UnmarshalText reads the text as ParseKey does.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}

// all returns the fields, also for the zero Key.
func (k Key) all() []field {
	if len(k.fields) == 0 {
		f, _ := parseField(clientIP)
		return []field{f}
	}
	return k.fields
}

func (k Key) names() []string {
	names := make([]string, 0, len(k.all()))
	for _, f := range k.all() {
		names = append(names, f.name)
	}
	return names
}

// of appends the key of a line to buffer. Each field but the last is preceded by its length, so that no two tuples
// of fields are one key. It reports whether each of the fields was there; one that wasn't is "-".
func (k Key) of(buffer []byte, l *line) (key []byte, whole bool) {
	fields := k.all()
	whole = true
	for i := range fields {
		value := fields[i].of(l)
		if len(value) == 0 {
			value, whole = []byte("-"), false
		} else if len(value) > maxKeyPart {
			value = digest(value)
		}
		if i < len(fields)-1 {
			buffer = binary.AppendUvarint(buffer, uint64(len(value)))
		}
		buffer = append(buffer, value...)
	}
	return buffer, whole
}

// split undoes of.
func (k Key) split(key string) []string {
	fields := len(k.all())
	parts := make([]string, 0, fields)
	for range fields - 1 {
		n, width := binary.Uvarint([]byte(key[:min(len(key), binary.MaxVarintLen64)]))
		end := width + int(n)
		parts, key = append(parts, key[width:end]), key[end:]
	}
	return append(parts, key)
}

// of returns the field of a line, empty if missing. An address is replaced by its network, as
// identity.NetworkOf writes networks. Text without an address stays unchanged.
func (f *field) of(l *line) []byte {
	value := l.field(f.name)
	// an IPv4 address has one spelling
	if f.v6 == 0 || f.v4 == 32 && bytes.IndexByte(value, ':') < 0 {
		return value
	}
	addr, err := netip.ParseAddr(string(value))
	if err != nil {
		return value
	}
	return []byte(identity.NetworkOf(addr, f.v4, f.v6))
}

// field returns the text of a field in the line.
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
