package server_test

import (
	"net"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
)

func TestProxiesAccepted(t *testing.T) {
	for _, text := range []string{"10.0.0.7", "10.0.0.0/8", "10.0.0.7/8", "0.0.0.0/1", "fd00::/8", "::1", "::/96", "::ffff:10.0.0.7", "::ffff:10.0.0.0/104"} {
		if err := (server.Config{ProxyProtocolFrom: []string{text}}).Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What is accepted is what the net package takes for an address or a CIDR, and never everything.
func FuzzProxies(f *testing.F) {
	for _, seed := range []string{"10.0.0.7", "10.0.0.0/8", "fd00::/8", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/90", "0.0.0.0/0", "::/0", "fe80::1%eth0", "", "/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if (server.Config{ProxyProtocolFrom: []string{text}}).Validate() != nil {
			return
		}
		_, network, err := net.ParseCIDR(text)
		if err != nil && net.ParseIP(text) == nil {
			t.Errorf("%q was accepted: %v", text, err)
		}
		if err == nil && (network.Contains(net.IPv4zero) && network.Contains(net.IPv4bcast) || strings.HasSuffix(text, "/0")) {
			t.Errorf("%q was accepted, and is everybody", text)
		}
	})
}
