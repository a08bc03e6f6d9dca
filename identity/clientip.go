package identity

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// maxProxies is how many proxies a ClientIP takes.
const maxProxies = 1024

// A ClientIP finds the address of the client of a request. The zero ClientIP, and a nil one, take that of the connection's peer, whatever the request says.
type ClientIP struct {
	field   string // "": no field is believed
	last    func(list string) (element, rest string, more bool)
	node    func(element string) (text string, ok bool)
	trusted []netip.Prefix
	unix    bool
}

// Peer is the ClientIP that trusts no proxy.
var Peer = &ClientIP{}

// Behind returns a ClientIP for a server behind proxies, which tell of their peers in a header field: X-Forwarded-For, Forwarded (RFC 7239), or one that has one address, such as
// X-Real-IP. The proxies are addresses and CIDRs, and "unix" for peers on a Unix socket. All of them must set this one field, and add to it or write it anew:
// a proxy that sets another one passes this one on as the client wrote it. Other fields count for nothing.
//
// What others than the proxies send in the field counts for nothing too: the list is read from its end, where the nearest proxy wrote, to the first address that is
// no proxy's. If all are proxies', the client is the first of the list: a proxy wrote that it got the request from there, such as a machine among the proxies that asks for something itself.
//
// If nothing can be told, the client is the peer. That is if the field is missing, or if what comes before such an address, from the end, is no address: it is empty, garbage, or hidden
// ("unknown", "_proxy"); is longer than 512 bytes; comes after 32 proxies. What is no address is never skipped, since what stands left of it is anybody's.
// A field that has one address must be there once, with one address.
//
// The error is a [*SourceError].
func Behind(field string, proxies ...string) (*ClientIP, error) {
	c := &ClientIP{field: http.CanonicalHeaderKey(field)}
	switch {
	case !isToken(field) || withheld(field):
		return nil, &SourceError{"the proxies' field", quoted(field), "X-Forwarded-For, Forwarded, or the name of a field that has one address, such as X-Real-IP; not Host, Trailer or Transfer-Encoding, which servers take out"}
	case len(proxies) == 0 || len(proxies) > maxProxies:
		return nil, &SourceError{"proxies", fmt.Sprintf("a list of %d", len(proxies)), fmt.Sprintf("1 to %d: "+proxyAccept, maxProxies)}
	}
	for i, text := range proxies {
		if text == "unix" {
			c.unix = true
			continue
		}
		p, ok := parsePrefix(text)
		if !ok {
			return nil, &SourceError{fmt.Sprintf("proxies[%d]", i), quoted(text), proxyAccept}
		}
		c.trusted = append(c.trusted, p)
	}
	if all(c.trusted) {
		return nil, &SourceError{"proxies", "a list that has all addresses of IPv4 or of IPv6", proxyAccept}
	}
	switch c.field {
	case "X-Forwarded-For":
		c.last, c.node = lastOfList, plainNode
	case "Forwarded":
		c.last, c.node = lastForwarded, forwardedFor
	default:
		c.last, c.node = wholeLine, plainNode
	}
	return c, nil
}

// all reports whether networks have all addresses of IPv4 in them, or all of IPv6.
func all(networks []netip.Prefix) bool {
	networks = slices.SortedFunc(slices.Values(networks), netip.Prefix.Compare)
	for _, next := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} { // the first that is in none so far
		for _, p := range networks {
			if p.Addr().BitLen() == next.BitLen() && p.Contains(next) {
				if next = lastOf(p).Next(); !next.IsValid() {
					return true
				}
			}
		}
	}
	return false
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

const proxyAccept = `an address, a CIDR such as 10.0.0.0/8 or fd00::/8, but not all addresses, whose clients would say what they like, or "unix"`

// parsePrefix reads an address or a CIDR. One of IPv4 that is written in IPv6 is one of IPv4.
func parsePrefix(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, false
	}
	if addr := p.Addr(); addr.Is4In6() {
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96) // invalid if it has addresses of both
	}
	return p.Masked(), p.Bits() > 0
}

// Addr returns the client's address: that of the peer, or what trusted proxies say, an address of IPv4 that is written in IPv6 as that of IPv4, and without a zone.
// It is invalid if there is none, as of a peer on a Unix socket, or if it is nothing that can be read.
//
// The peer is what the request's RemoteAddr says, with a port or without. Of a server's requests, it says nothing where http.LocalAddrContextKey has the address of a Unix socket, in whose
// names its peers can write any address. Who makes requests without that key says what they are from.
func (c *ClientIP) Addr(r *http.Request) netip.Addr {
	addr, _ := c.client(r)
	return addr
}

// client returns the client's address, and its text as it came.
func (c *ClientIP) client(r *http.Request) (netip.Addr, string) {
	peer, text, unix := peerOf(r)
	if c == nil || c.field == "" || !c.trusts(peer) && (!c.unix || !unix) {
		return peer, text
	}
	if addr, t := c.told(r.Header[c.field]); addr.IsValid() {
		return addr, t
	}
	return peer, text
}

// forwarding are the header fields in which proxies pass on the address of a client.
var forwarding = [...]string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"}

// Ignored returns the name of a header field with the address of a client, which counts for nothing
// because the connection's peer is no trusted proxy: X-Forwarded-For, Forwarded, X-Real-Ip or the
// field of [Behind]. It returns "" for requests without these fields, and from a trusted proxy. If
// the peer is a proxy of the server's owner, all its clients count as one client. But clients can
// send these fields too.
func (c *ClientIP) Ignored(r *http.Request) (field string) {
	if c != nil && c.field != "" && len(r.Header[c.field]) > 0 {
		field = c.field
	}
	for _, name := range forwarding {
		if field == "" && len(r.Header[name]) > 0 {
			field = name
		}
	}
	if field == "" || c == nil || c.field == "" {
		return field
	}
	if peer, _, unix := peerOf(r); c.trusts(peer) || c.unix && unix {
		return ""
	}
	return field
}

func (c *ClientIP) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// peerOf returns the address of the connection's peer, and its text, and whether it is on a Unix socket: there its name is a file's, which is the peer's to choose, and no address
// though it be written like one. What the server says of its own end decides; where nothing does, RemoteAddr is what it looks like.
func peerOf(r *http.Request) (addr netip.Addr, text string, unix bool) {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		unix = strings.HasPrefix(local.Network(), "unix") // and unixpacket
	} else {
		unix = strings.HasPrefix(r.RemoteAddr, "@") || strings.HasPrefix(r.RemoteAddr, "/")
	}
	if unix {
		return netip.Addr{}, "", true
	}
	addr, text = parseNode(r.RemoteAddr)
	return addr, text, false
}
