package policy

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/nearest"
)

// A Grant is what a client has instead of the default limits: a plan, or limits of its own.
type Grant struct {
	Plan string // "" if it has limits of its own
	// Limits are by the policy's name; those under "" are for every policy that has plans.
	Limits map[string][]weir.Limit
}

// Clients return the grants of clients. A Set calls Grant for each request: it must be quick, and
// allow concurrent calls.
//
// A client is named by its source and its value: client_ip=192.0.2.7, client_ip=2001:db8:1:2::/64,
// header:X-Api-Key=k1, attribute:tenant=acme, or hash:header:X-Api-Key=# and the SHA-256, as
// [ClientName] writes it. So the value of a header is never taken for an address. Where all
// policies with plans (without plans: all policies) take their clients from one source, a client
// without a grant under this name may have a grant under its value alone, such as acme.
//
// Clients with both kinds of names may have a method Unqualified() int, which returns the number of
// names without a source. A Set with several sources refuses these names.
type Clients interface {
	// Grant returns the client's grant; ok is false for one that has none, whose limits are the default ones. The Grant is not changed
	// after it was returned.
	Grant(client string) (g *Grant, ok bool)
	// Grants calls f for each different grant that clients have or may come to have, until it returns an error, which it then returns.
	Grants(f func(*Grant) error) error
}

// name is the name of the source in the names of clients. client_ip is one source, of however many
// bits: the value has them.
func (s *keySource) name() string {
	if s.v6 == 0 {
		return s.text
	}
	if s.hash {
		return hashPrefix + "client_ip"
	}
	return "client_ip"
}

// client returns the client's name for a value, which is not empty.
func (s *keySource) client(value string) string {
	switch {
	case s.hash:
		return s.name() + "=#" + identity.Hash(value)
	case s.v6 == 0:
		return s.text + "=" + value
	case strings.Contains(value, ":") && !strings.Contains(value, "/"):
		// client_ip= and an address without bits is its network
		return "client_ip=" + value + "/128"
	}
	return "client_ip=" + value
}

// ClientName returns the canonical form of a client's name, as in [Clients], and a name without a
// source unchanged. It reads client_ip=2001:db8:1:2::7 as the network of 64 bits that
// client_ip counts, and hash:header:X-API-Key= and a secret as the hash of the secret. The error
// names an impossible source or value. A value of # and a SHA-256 counts as hashed.
func ClientName(text string) (string, error) {
	source, value, named := strings.Cut(text, "=")
	if !named {
		return text, nil
	}
	s, ok := parseKeySource(source)
	if !ok {
		kind, _, _ := strings.Cut(strings.TrimPrefix(source, hashPrefix), ":")
		if near := nearest.Of(kind, []string{"client_ip", "header", "query", "cookie", "attribute"}); near != "" {
			return "", fmt.Errorf("weir: client has the source %s; accepted: client_ip, header:name, query:name, cookie:name, attribute:name, method, host, path, or hash: before one of them", short(source))
		}
		return text, nil
	}
	switch {
	case value == "":
		return "", fmt.Errorf("weir: client %s= has no value; accepted: %s= and the value", source, s.name())
	case s.hash && isHash(value):
		return s.name() + "=" + value, nil
	case s.v6 != 0:
		prefix, err := parsePrefix(value)
		if err != nil {
			return "", fmt.Errorf("weir: client has the address %s; accepted: an address or a CIDR, such as 192.0.2.7 or 2001:db8:1:2::/64", short(value))
		}
		if strings.Contains(value, "/") {
			s.v4, s.v6 = prefix.Bits(), prefix.Bits()
		}
		value = identity.NetworkOf(prefix.Addr(), s.v4, s.v6)
	case s.text == "method":
		value = strings.ToUpper(value)
	case s.text == "host":
		value = strings.ToLower(hostname(value))
	}
	return s.client(value), nil
}

// NamesSource reports whether a client's name has a source, as in client_ip=192.0.2.7. A Set never
// looks up such a value without a source: a header with this value is not the address.
func NamesSource(client string) bool {
	source, _, ok := strings.Cut(client, "=")
	if ok {
		_, ok = parseKeySource(source)
	}
	return ok
}

// isHash reports whether a value in a client's name is hashed already.
func isHash(value string) bool {
	hash, ok := strings.CutPrefix(value, "#")
	sum, err := base64.RawURLEncoding.DecodeString(hash)
	return ok && err == nil && len(sum) == sha256.Size
}
