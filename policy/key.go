package policy

import (
	"net/textproto"
	"strings"
	"unicode/utf8"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/nearest"
)

// Bounds on keys.
const (
	maxKeyParts     = 8
	maxAlternatives = 8
)

const (
	keyAll    = "all"
	keyAccept = "client_ip (IPv6 by its first 64 bits), client_ip/48 (IPv6 by so many), client_ip/24/64 (IPv4, IPv6), method, host, path, header:name, query:name, " +
		"cookie:name, attribute:name, hash: before any of them for its SHA-256, or several with | between them, of which the first that is present counts"
)

// A keyPart is one part of a key: the first of its alternatives that a request has.
type keyPart []keySource

// A keySource is one thing that a key can be taken from.
type keySource struct { //nolint:recvcheck // chosenByClient is an argument of slices functions
	text   string // in its canonical form
	of     source // of a kind with names
	v4, v6 int    // of client_ip: bits
	hash   bool   // the value is replaced by its SHA-256
}

// A keyMaker makes the keys of a policy.
type keyMaker []keyPart

func (p *problems) key(parts []string, field string) keyMaker {
	switch {
	case p.broken(field):
		return nil
	case len(parts) == 0:
		p.missing(field, "a list such as [client_ip], or all, to count everybody as one")
		return nil
	case len(parts) > maxKeyParts:
		p.addf(field, "has %d parts; accepted: at most %d", len(parts), maxKeyParts)
		return nil
	case len(parts) == 1 && parts[0] == keyAll:
		return keyMaker{}
	}
	key := keyMaker{}
	for i, text := range parts {
		if f := p.one(field, i); !p.broken(f) {
			key = append(key, p.keyPart(text, f))
		}
	}
	return key
}

func (p *problems) keyPart(text, field string) (part keyPart) {
	for alternative := range strings.SplitSeq(text, "|") {
		s, ok := parseKeySource(strings.TrimSpace(alternative))
		switch {
		case alternative == keyAll:
			p.addf(field, "is all beside others; accepted: all alone, or %s", keyAccept)
			return nil
		case !ok:
			guess := ""
			kind, name, named := strings.Cut(strings.TrimSpace(alternative), ":")
			if near := nearest.Of(kind, []string{"client_ip", "method", "host", "path", "header", "query", "cookie", "attribute", "hash"}); near != "" && near != kind {
				guess = "; did you mean " + near
				if named {
					guess += ":" + name
				}
				guess += "?"
			}
			p.addf(field, "has %s%s; accepted: %s", short(alternative), guess, keyAccept)
			return nil
		}
		part = append(part, s)
	}
	if len(part) > maxAlternatives {
		p.addf(field, "has %d alternatives; accepted: at most %d", len(part), maxAlternatives)
	}
	return part
}

// hashPrefix marks a source whose value is secret.
const hashPrefix = "hash:"

// parseKeySource reads a source. The values of cookies and of headers with credentials are always
// hashed.
func parseKeySource(text string) (s keySource, ok bool) {
	plain, hash := strings.CutPrefix(text, hashPrefix)
	if s, ok = parsePlainSource(plain); !ok {
		return s, false
	}
	switch {
	case hash || s.of.kind == cookie:
		s.hash = true
	case s.of.kind == header:
		s.hash = holdsCredentials(s.of.name)
	}
	if s.hash {
		s.text = hashPrefix + s.text
	}
	return s, true
}

func holdsCredentials(header string) bool {
	return header == "Authorization" || header == "Proxy-Authorization" || header == "Cookie"
}

func parsePlainSource(text string) (s keySource, ok bool) {
	s.text = text
	switch text {
	case "method", "host", "path":
		return s, true
	}
	if s.v4, s.v6, ok = identity.ParseNetwork(text); ok {
		return s, true
	}
	kind, name, _ := strings.Cut(text, ":")
	s.of = source{sourceKind(kind), name}
	switch s.of.kind {
	case header:
		s.of.name = textproto.CanonicalMIMEHeaderKey(name)
		s.text = kind + ":" + s.of.name
		return s, isToken(name) && !strings.EqualFold(name, "Host")
	case cookie:
		return s, isToken(name)
	case query, attribute:
		return s, name != "" && len(name) <= maxName && !strings.ContainsAny(name, " ,|=%#") && utf8.ValidString(name)
	}
	return s, false
}

// value returns the value in the request, not hashed, or "" if it is missing or empty.
func (s *keySource) value(r *facts) string {
	switch {
	case s.of.kind != "":
		v, _ := s.of.first(r)
		return v
	case s.v6 != 0:
		return s.network(r)
	}
	switch strings.TrimPrefix(s.text, hashPrefix) {
	case "method":
		return strings.ToUpper(r.Method)
	case "host":
		return strings.ToLower(hostname(r.Host))
	}
	return r.Path
}

// encode returns the value as a part of a key: of a secret, its SHA-256. Each source of a request
// has one value, which is hashed once.
func (s *keySource) encode(r *facts, value string) string {
	switch {
	case value == "" || !s.hash && len(value) <= longValue:
		return identity.Encode(value)
	case len(value) <= longValue: // not worth the memory
		return s.hashed(value)
	}
	i := 0
	for ; i < len(r.codes) && r.codes[i].source != ""; i++ {
		if r.codes[i].source == s.text {
			return strings.Clone(r.codes[i].text) // a clone keeps the Request off the heap
		}
	}
	text := strings.Clone(s.hashed(value))
	if i < len(r.codes) {
		r.codes[i] = code{s.text, text}
	}
	return text
}

// longValue is the length of values, in bytes, beyond which a request keeps the code.
const longValue = 128

func (s *keySource) hashed(value string) string {
	if s.hash {
		return "#" + identity.Hash(value)
	}
	return identity.Encode(value)
}

// network returns the network that the client's address is in, or the address.
func (s *keySource) network(r *facts) string {
	if !r.ClientIP.IsValid() {
		return ""
	}
	return identity.NetworkOf(r.ClientIP, s.v4, s.v6)
}

// value returns the first alternative that the request has, and its value, which is "" if there is none.
func (p keyPart) value(r *facts) (of *keySource, value string) {
	for i := range p {
		if v := p[i].value(r); v != "" {
			return &p[i], v
		}
	}
	return nil, ""
}

// key returns the request's key: its parts with commas between them. Where a part has alternatives,
// the name of the source comes first. A missing part is -. Commas and unprintable bytes are written
// as %XX. A secret part, or a part of more than 128 bytes, is # and its SHA-256. No two tuples have
// one key.
func (m keyMaker) key(r *facts) string {
	if len(m) == 1 && len(m[0]) == 1 {
		s := &m[0][0]
		value := s.value(r)
		if !s.hash && len(value) <= longValue { // as encode does
			return identity.Encode(value)
		}
		return s.encode(r, value)
	}
	var b strings.Builder
	for i, part := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		of, value := part.value(r)
		switch {
		case of == nil:
			b.WriteString(identity.Encode(""))
		case len(part) > 1:
			b.WriteString(of.text + "=" + of.encode(r, value))
		default:
			b.WriteString(of.encode(r, value))
		}
	}
	return b.String()
}
