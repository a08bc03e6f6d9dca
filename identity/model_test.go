package identity_test

import (
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/identity"
)

// The model of what proxies say: slow, and written down as the grammar has it.
var (
	modelV4      = regexp.MustCompile(`^([0-9.]+)(:([0-9]{1,5}|_[A-Za-z0-9._-]+))?$`)
	modelV6      = regexp.MustCompile(`^\[([^\]]*:[^\]]*)\](:([0-9]{1,5}|_[A-Za-z0-9._-]+))?$`)
	modelBareV6  = regexp.MustCompile(`(?s)^([^\[:]*:[^:]*:.*)$`)
	modelPair    = "[!#$%&'*+.^_`|~0-9A-Za-z-]+=" + "(?:[!#$%&'*+.^_`|~0-9A-Za-z:\\[\\]-]+|\"(?:[^\"\\\\]|\\\\.)*\")"
	modelElement = regexp.MustCompile(`(?s)^[ \t]*(?:` + modelPair + `[ \t]*)?(?:;[ \t]*(?:` + modelPair + `[ \t]*)?)*$`)
	modelPairs   = regexp.MustCompile(`(?s)` + modelPair)
)

func modelNode(text string) netip.Addr {
	for _, pattern := range []*regexp.Regexp{modelV4, modelV6, modelBareV6} {
		if m := pattern.FindStringSubmatch(text); m != nil {
			if addr, err := netip.ParseAddr(m[1]); err == nil {
				return addr.Unmap().WithZone("")
			}
		}
	}
	return netip.Addr{}
}

// modelElements cuts the lines of a field into elements, the last first. What can't be cut, or is too long, is an element as well, and the last.
func modelElements(field string, lines []string) (elements []string) {
	switch all := strings.Join(lines, ","); field {
	case "X-Forwarded-For":
		elements = strings.Split(all, ",")
		slices.Reverse(elements)
	case "Forwarded":
		for found := true; found && len(elements) <= 32; {
			found = false
			for i := len(all); i >= max(0, len(all)-512) && !found; i-- {
				if i != 0 && all[i-1] != ',' || !modelElement.MatchString(all[i:]) {
					continue
				}
				elements = append(elements, all[i:])
				if i == 0 {
					return elements
				}
				all, found = all[:i-1], true
			}
		}
		elements = append(elements, "x")
	default:
		elements = lines
		if len(lines) != 1 {
			elements = []string{"x"}
		}
	}
	return elements
}

// modelTells returns the address that an element tells.
func modelTells(field, element string) netip.Addr {
	if len(element) > 512 {
		return netip.Addr{}
	}
	if field != "Forwarded" {
		return modelNode(strings.Trim(element, " \t"))
	}
	var nodes []string
	for _, pair := range modelPairs.FindAllString(element, -1) {
		if name, value, _ := strings.Cut(pair, "="); strings.EqualFold(name, "for") {
			if value[0] == '"' {
				value = regexp.MustCompile(`(?s)\\(.)`).ReplaceAllString(value[1:len(value)-1], "$1")
			}
			nodes = append(nodes, value)
		}
	}
	if len(nodes) != 1 || !modelElement.MatchString(element) {
		return netip.Addr{}
	}
	return modelNode(nodes[0])
}

func modelClient(field string, trusted func(netip.Addr) bool, remote string, lines []string) netip.Addr {
	peer := modelNode(remote)
	if !trusted(peer) {
		return peer
	}
	client := peer
	for i, element := range modelElements(field, lines) {
		client = modelTells(field, element)
		switch {
		case !client.IsValid() || i >= 32:
			return peer
		case !trusted(client):
			return client
		}
	}
	return client
}

// modelTrusts is what proxies says, in other words.
func modelTrusts(addr netip.Addr) bool {
	text := addr.StringExpanded()
	return addr.Is4() && (strings.HasPrefix(text, "10.") || text == "192.0.2.250" || regexp.MustCompile(`^172\.(1[6-9]|2[0-9]|3[01])\.`).MatchString(text)) ||
		strings.HasPrefix(text, "2001:0db8:ffff:")
}

var fields = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip"}

func checkClient(t tester, field, remote string, lines []string) netip.Addr {
	t.Helper()
	r := told(remote, field)
	if len(lines) > 0 {
		r.Header[field] = lines
	}
	got, want := behind(t, field, proxies...).Addr(r), modelClient(field, modelTrusts, remote, lines)
	if got != want {
		t.Fatalf("%s: %q from %s is %s, by the model %s", field, lines, remote, got, want)
	}
	if peer := modelNode(remote); !modelTrusts(peer) && got != peer {
		t.Fatalf("%s: %q overrides %s, which is not trusted: %s", field, lines, remote, got)
	}
	key := identity.Key{behind(t, field, proxies...).Source()}.Of(r)
	if key != identity.NetworkOf(want, 32, 64) || len(key) > 43 {
		t.Fatalf("%s: the key of %q from %s is %q", field, lines, remote, key)
	}
	return got
}

// Pitfall H3: what proxies say is read as the model does, whatever is sent.
func TestH3ClientsAreTheModels(t *testing.T) {
	nodes := []string{
		"10.0.0.2", "10.0.0.3:80", "172.16.0.1", "192.0.2.250", "2001:db8:ffff::1", "[2001:db8:ffff::2]:80", "::ffff:10.0.0.4", "192.0.2.1", "198.51.100.1:4711",
		"2001:db8::1", "[2001:db8::2]", "[fe80::1%eth0]:1", "unknown", "_x", "", "x", "10.0.0.2:_x",
	}
	wrap := []string{`%`, `for=%`, `for="%"`, `For="%";proto=http`, `x="a, for=10.0.0.9";for=%`, `by=10.0.0.1 ; for="%"`, `x="`, `for=%;x="\", "`, `;;`, ` % `, `for="\%"`, `\`, `for=%;for=%`}
	changed, kept := 0, 0
	draw := func(t *rapid.T) {
		field := rapid.SampledFrom(fields).Draw(t, "field")
		usual := "%"
		if field == "Forwarded" {
			usual = `for="%"`
		}
		var lines []string
		for range rapid.IntRange(0, 3).Draw(t, "lines") {
			var elements []string
			for range rapid.IntRange(0, 5).Draw(t, "elements") {
				with := usual
				if rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
					with = rapid.SampledFrom(wrap).Draw(t, "wrap")
				}
				elements = append(elements, strings.ReplaceAll(with, "%", rapid.SampledFrom(nodes).Draw(t, "node")))
			}
			if rapid.IntRange(0, 4).Draw(t, "long") == 0 {
				elements = append([]string{strings.Repeat(rapid.SampledFrom(left).Draw(t, "left"), rapid.IntRange(500, 1300).Draw(t, "times"))}, elements...)
			}
			lines = append(lines, strings.Join(elements, rapid.SampledFrom([]string{",", ", ", " ,\t"}).Draw(t, "comma")))
		}
		remote := rapid.SampledFrom([]string{peer, peer, peer, "198.51.100.9:1", "@", "[2001:db8:ffff::1]:1"}).Draw(t, "remote")
		if r := (&http.Request{RemoteAddr: remote}); checkClient(t, field, remote, lines) == identity.Peer.Addr(r) {
			kept++
		} else {
			changed++
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			draw(t)
		}
	})
	if changed == 0 || kept == 0 {
		t.Errorf("%d clients are others than the peer, %d are the peer: want some of both", changed, kept)
	}
}

func FuzzClientIP(f *testing.F) {
	for i := range fields {
		for _, lines := range []string{"192.0.2.1, 10.0.0.2", "192.0.2.1\n10.0.0.2", "[2001:db8::1]:80", `for=192.0.2.1;x="\",", for="[2001:db8:ffff::1]:_x"`, `for="`, ",", "", `for="\"`} {
			f.Add(i, peer, lines)
			f.Add(i, peer, strings.Repeat("a", 1001)+", "+lines)
			f.Add(i, peer, strings.Repeat(`\"`, 1000)+`\,`+lines)
			f.Add(i, "198.51.100.9:1", lines)
		}
	}
	f.Fuzz(func(t *testing.T, field int, remote, lines string) {
		if len(lines) > 8<<10 {
			return // the model is slow
		}
		checkClient(t, fields[uint(field)%uint(len(fields))], remote, strings.Split(lines, "\n"))
	})
}

// What is taken for a proxy is an address or a CIDR, and trusts the addresses that are in it, and not the one before nor the one after.
func FuzzBehind(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8", "10.1.2.3/8", "::ffff:10.0.0.0/104", "2001:db8::/32", "192.0.2.7", "::ffff:192.0.2.7", "fe80::1%eth0", "::/0", "::ffff:0:0/96", "0.0.0.0/1", "ff00::/8", "unix", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ip, err := identity.Behind("X-Forwarded-For", text)
		if (ip == nil) == (err == nil) {
			t.Fatalf("%q: %v and the error %v", text, ip, err)
		}
		if err != nil || text == "unix" {
			return
		}
		address, width, cidr := strings.Cut(text, "/")
		first, err := netip.ParseAddr(address)
		if err != nil || first.Zone() != "" {
			t.Fatalf("%q is accepted: %v", text, err)
		}
		bits := first.BitLen()
		if cidr {
			if bits, err = strconv.Atoi(width); err != nil {
				t.Fatalf("%q is accepted: %v", text, err)
			}
		}
		if first.Is4In6() {
			first, bits = first.Unmap(), bits-96
		}
		if bits <= 0 {
			t.Fatalf("%q is accepted: all addresses", text)
		}
		last := first.AsSlice()
		lowest := first.AsSlice()
		for i := bits; i < first.BitLen(); i++ {
			last[i/8] |= 0x80 >> (i % 8)
			lowest[i/8] &^= 0x80 >> (i % 8)
		}
		from, _ := netip.AddrFromSlice(lowest)
		to, _ := netip.AddrFromSlice(last)
		told := netip.MustParseAddr("203.0.113.77")
		for addr, trusted := range map[netip.Addr]bool{from: true, to: true, first: true, from.Prev(): false, to.Next(): false} {
			if addr.Unmap() != addr || !addr.IsValid() { // the neighbour of a network at the end of its family
				continue
			}
			r := &http.Request{RemoteAddr: netip.AddrPortFrom(addr, 1).String(), Header: http.Header{"X-Forwarded-For": {told.String()}}}
			if got := ip.Addr(r); trusted != (got == told) && addr != told {
				t.Errorf("behind %q, from %s it is %s", text, addr, got)
			}
		}
	})
}
