package identity

import (
	"net/netip"
	"strings"
)

// parseNode reads the address of a peer, as servers and proxies write it: with or without a port, IPv6 with or without brackets and a zone. It returns it as IPv4 where it
// is that, without its zone, and the text of the address alone. What can't be read is the invalid address.
func parseNode(text string) (netip.Addr, string) {
	host, port := text, ""
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 || strings.IndexByte(text[:end], ':') < 0 {
			return netip.Addr{}, ""
		}
		host, port = text[1:end], text[end+1:]
	} else if i := strings.IndexByte(text, ':'); i >= 0 && i == strings.LastIndexByte(text, ':') { // more are an IPv6 address
		host, port = text[:i], text[i:]
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || port != "" && !isPort(port) {
		return netip.Addr{}, ""
	}
	return addr.Unmap().WithZone(""), host
}

// isPort reports whether a text is : and a number of up to five digits, or : and a name that begins with _, which RFC 7239 has in place of a number.
func isPort(text string) bool {
	name, hidden := strings.CutPrefix(text, ":_")
	if hidden {
		return strings.IndexFunc(name, func(c rune) bool { return c > 0x7f || !isAlphanumeric(byte(c)) && !strings.ContainsRune("._-", c) }) < 0 && name != ""
	}
	digits, ok := strings.CutPrefix(text, ":")
	if !ok || digits == "" || len(digits) > 5 {
		return false
	}
	for _, c := range []byte(digits) { // strings.Trim takes as long as reading the address
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
