package server

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// AddressAccepted describes the accepted addresses.
const AddressAccepted = "host:port, a port of 127.0.0.1 such as 6380, unix:/path of a socket, or off"

// address brings an address to the form host:port, unix:/path?mode=0600, or Off. The error is a
// *ConfigError.
func address(field, text string) (string, error) {
	if text == Off {
		return Off, nil
	}
	if isUnix(text) {
		return unixAddress(field, text)
	}
	host, port := "127.0.0.1", text
	if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", &ConfigError{field, strconv.Quote(text), "no host:port", AddressAccepted}
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", &ConfigError{field, strconv.Quote(text), "the port is no number from 0 to 65535", AddressAccepted}
	}
	return net.JoinHostPort(host, port), nil
}

// HostsAccepted describes the names in HTTPHosts.
const HostsAccepted = "names without a port, such as weir.example.com or *.example.com"

// hosts checks the names of HTTPHosts. The error is a *ConfigError.
func hosts(names []string) error {
	for _, name := range names {
		domain := strings.TrimPrefix(name, "*.")
		if domain == "" || strings.ContainsFunc(domain, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("*:/@?#[]", r) }) {
			return &ConfigError{"http-host", strconv.Quote(name), "no name of a host", HostsAccepted}
		}
	}
	return nil
}

// NetworksAccepted says what the networks of proxies may be.
const NetworksAccepted = "addresses and CIDRs, such as 10.0.0.7 or fd00::/8, but not all addresses; and unix"

// networks reads addresses and CIDRs, and reports whether unix is among them. An IPv4 address in IPv6
// form is an IPv4 address. The error is a *ConfigError.
func networks(field string, texts []string) (all []netip.Prefix, unix bool, err error) {
	for _, text := range texts {
		if text == "unix" {
			unix = true
			continue
		}
		p, ok := network(text)
		if !ok {
			return nil, false, &ConfigError{field, strconv.Quote(text), "no network of proxies", NetworksAccepted}
		}
		all = append(all, p)
	}
	return all, unix, nil
}

func network(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	if addr := p.Addr(); addr.Is4In6() {
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96) // invalid if it has addresses of both
	}
	return p.Masked(), err == nil && p.Bits() > 0
}

// local reports whether a host is this machine's only: an address of loopback, or localhost. known
// is false for a name, which has to be resolved.
func local(host string) (is, known bool) {
	if host == "localhost" {
		return true, true
	}
	if host == "" { // all addresses
		return false, true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback(), err == nil
}

// anyPort reports whether a free port is to be chosen, so that equal addresses do not meet.
func anyPort(address string) bool { return address == Off || strings.HasSuffix(address, ":0") }

// why says in words what keeps a listener from its address.
func why(err error) string {
	var inner *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there"
	case errors.Is(err, syscall.EACCES):
		return "this user may not listen there"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address"
	case errors.As(err, &inner):
		return inner.Err.Error()
	}
	return err.Error()
}

// SizeAccepted describes the input of ParseSize.
const SizeAccepted = "a number of bytes with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, such as 512MiB or 2GB"

var sizes = []struct {
	unit  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// ParseSize returns the bytes of a size such as 512MiB or 2GB: a whole number and a unit, in
// letters of any case. Without a unit the number is in bytes.
func ParseSize(text string) (int64, error) {
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	unit := strings.ToLower(strings.TrimSpace(text[digits:]))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	if err == nil {
		for _, s := range sizes {
			if s.unit != unit {
				continue
			}
			if n <= math.MaxInt64/s.bytes {
				return n * s.bytes, nil
			}
		}
	}
	return 0, fmt.Errorf("%q is no size; accepted: %s", text, SizeAccepted)
}

// sizeText returns bytes as ParseSize reads them, in the largest unit of which they are a whole
// number.
func sizeText(bytes int64) string {
	text := strconv.FormatInt(bytes, 10)
	for _, s := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if bytes == 0 || bytes%1024 != 0 {
			break
		}
		bytes /= 1024
		text = strconv.FormatInt(bytes, 10) + s
	}
	return text
}
