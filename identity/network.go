package identity

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// unusable is what stands for an address that can't be used: all such clients are one. No address is written like it.
const unusable = "unknown"

// Source is Network(32, 64): an address of IPv4, or the network of IPv6 that one client usually has, who can choose any address in it.
func (c *ClientIP) Source() Source { return c.Network(32, 64) }

// Network is the network that the client's address is in, of v4 bits (1 to 32) of IPv4 and v6 bits (1 to 128) of IPv6: an address such as 192.0.2.7, or a CIDR such as
// 2001:db8:1:2::/64. For an address that is not usable it is "unknown", and so never nothing: such clients are counted, as one.
//
// A client can have many networks of 64 bits: to count wider ones as well, use several sources, each with a limit of its own.
//
// Its name in policies is client_ip, client_ip/56 where IPv4 is whole, or client_ip/24/64;
// see [ParseNetwork].
func (c *ClientIP) Network(v4, v6 int) Source {
	name := "client_ip"
	switch {
	case v4 < 1 || v4 > 32:
		return refused("client_ip's bits of IPv4", strconv.Itoa(v4), "1 to 32")
	case v6 < 1 || v6 > 128:
		return refused("client_ip's bits of IPv6", strconv.Itoa(v6), "1 to 128")
	case v4 != 32:
		name = fmt.Sprintf("client_ip/%d/%d", v4, v6)
	case v6 != 64:
		name = fmt.Sprintf("client_ip/%d", v6)
	}
	if c == nil {
		c = Peer
	}
	return Source{name: name, client: c, find: func(r *http.Request) string {
		addr, text := c.client(r)
		if v4 == 32 && addr.Is4() && strings.IndexByte(text, ':') < 0 {
			return text // there is one way to write an address of IPv4
		}
		return NetworkOf(addr, v4, v6)
	}}
}

// ParseNetwork reads the name of a network source, in keys of policies and of weir replay. It
// returns the number of address bits that identify a client, under IPv4 and IPv6:
//
//	client_ip        32, 64
//	client_ip/56     32, 56
//	client_ip/24/64  24, 64
//
// ok is false for all further texts.
func ParseNetwork(text string) (v4, v6 int, ok bool) {
	bits, ok := strings.CutPrefix(text, "client_ip")
	switch {
	case !ok:
		return 0, 0, false
	case bits == "":
		return 32, 64, true // the owner of an IPv6 address can usually choose its last 64 bits
	}
	text4, text6, both := strings.Cut(strings.TrimPrefix(bits, "/"), "/")
	if !both {
		text4, text6 = "32", text4
	}
	v4, ok4 := parseBits(text4, 32)
	v6, ok6 := parseBits(text6, 128)
	if !ok4 || !ok6 || bits[0] != '/' {
		return 0, 0, false
	}
	return v4, v6, true
}

func parseBits(text string, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && 1 <= n && n <= most && text[0] != '+' && text[0] != '0'
}

// NetworkOf returns the text of the network that an address is in, of so many bits under IPv4 and IPv6; of all bits, or of a number that there can't be, it is the whole address.
// An address of IPv4 that is written in IPv6 is one of IPv4, and zones don't count. Of the invalid address it is "unknown".
func NetworkOf(addr netip.Addr, v4, v6 int) string {
	addr = addr.Unmap().WithZone("")
	if !addr.IsValid() {
		return unusable
	}
	bits := v6
	if addr.Is4() {
		bits = v4
	}
	if bits < 0 || bits >= addr.BitLen() {
		return addr.String()
	}
	var buffer [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128")]byte
	return string(netip.PrefixFrom(addr, bits).Masked().AppendTo(buffer[:0]))
}
