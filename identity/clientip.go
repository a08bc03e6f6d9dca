package identity

import (
	"net/http"
	"net/netip"
	"strings"
)

// A ClientIP finds the address of the client of a request. The zero ClientIP, and a nil one, take that of the connection's peer, whatever the request says.
type ClientIP struct {
	field   string
	trusted []netip.Prefix
	unix    bool
}

// Peer is the ClientIP that trusts no proxy.
var Peer = &ClientIP{}

// Behind returns a ClientIP for a server behind proxies, which tell of their peers in a header field: X-Forwarded-For, Forwarded (RFC 7239), or one that has one address, such as
// X-Real-IP. The proxies are addresses and CIDRs, and "unix" for peers of a Unix socket. What others send in the field counts for nothing: the list is read from its end, the
// nearest proxy first, to the first address that is no proxy's.
func Behind(field string, proxies ...string) (*ClientIP, error) {
	c := &ClientIP{field: http.CanonicalHeaderKey(field)}
	for _, text := range proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		c.trusted = append(c.trusted, p)
	}
	return c, nil
}

// Addr returns the client's address, unmapped and without a zone. It is invalid if there is none, as of a peer on a Unix socket that is no proxy.
func (c *ClientIP) Addr(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// Source is Network(32, 64): an address of IPv4, or the network of IPv6 that one client usually has.
func (c *ClientIP) Source() Source { return c.Network(32, 64) }

// unusable is what stands for an address that can't be used: all such clients are one.
const unusable = "unknown"

// Network is the network that the client's address is in, of so many bits under IPv4 and IPv6. For an address that is not usable it is "unknown", and so never nothing.
func (c *ClientIP) Network(v4, v6 int) Source {
	return Source{name: "client_ip", find: func(r *http.Request) string {
		addr := c.Addr(r)
		if !addr.IsValid() {
			return unusable
		}
		if addr.Is4() && v4 == 32 {
			if host, _, ok := strings.Cut(r.RemoteAddr, ":"); ok {
				return host
			}
		}
		return NetworkOf(addr, v4, v6)
	}}
}

// NetworkOf returns the text of the network that an address is in, of so many bits under IPv4 and IPv6; of a whole address it is that.
func NetworkOf(addr netip.Addr, v4, v6 int) string {
	bits := v6
	if addr.Is4() {
		bits = v4
	}
	if bits == addr.BitLen() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, bits).Masked().String()
}
