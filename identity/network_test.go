package identity_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/test/bufconn"

	"github.com/weirlimit/weir/identity"
)

// from is a request of a peer.
func from(remote string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = remote
	return r
}

// Pitfalls H2 and H4: each way in which a server can write the address of a peer.
func TestH2H4PeersAreKeys(t *testing.T) {
	for name, c := range map[string]struct{ remote, want string }{
		"IPv4":                            {"192.0.2.7:4711", "192.0.2.7"},
		"IPv4 without a port":             {"192.0.2.7", "192.0.2.7"},
		"IPv6":                            {"[2001:db8:1:2:3::4]:4711", "2001:db8:1:2::/64"},
		"IPv6 without a port":             {"[2001:db8:1:2:3::4]", "2001:db8:1:2::/64"},
		"IPv6 without brackets":           {"2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		"IPv6 in capitals":                {"[2001:DB8:1:2::]:1", "2001:db8:1:2::/64"},
		"IPv6 written at length":          {"[2001:0db8:0001:0002:0000:0000:0000:0001]:1", "2001:db8:1:2::/64"},
		"mapped":                          {"[::ffff:1.2.3.4]:80", "1.2.3.4"},
		"mapped without a port":           {"::ffff:1.2.3.4", "1.2.3.4"},
		"mapped in hexadecimal":           {"[::ffff:102:304]:80", "1.2.3.4"},
		"mapped written at length":        {"[0:0:0:0:0:ffff:0102:0304]:80", "1.2.3.4"},
		"mapped with a zone":              {"[::ffff:102:304%eth0]:80", "1.2.3.4"},
		"IPv4 at the end of IPv6":         {"[2001:db8:1234:5678::1.2.3.4]:80", "2001:db8:1234:5678::/64"},
		"that in hexadecimal":             {"[2001:db8:1234:5678::102:304]:80", "2001:db8:1234:5678::/64"},
		"NAT64 is IPv6":                   {"[64:ff9b::1.2.3.4]:80", "64:ff9b::/64"},
		"IPv4-compatible is IPv6":         {"[::1.2.3.4]:80", "::/64"},
		"6to4 is IPv6":                    {"[2002:102:304::1]:80", "2002:102:304::/64"},
		"unspecified":                     {"[::]:80", "::/64"},
		"loopback":                        {"[::1]:80", "::/64"},
		"unspecified IPv4 is not that":    {"0.0.0.0:80", "0.0.0.0"},
		"unspecified mapped is not that":  {"[::ffff:0.0.0.0]:80", "0.0.0.0"},
		"zone":                            {"[fe80::1%eth0]:80", "fe80::/64"},
		"zone without a port":             {"fe80::1%eth0", "fe80::/64"},
		"another zone":                    {"[fe80::1%25eth1]:80", "fe80::/64"},
		"Unix socket":                     {"@", "unknown"},
		"named Unix socket":               {"/run/client.sock", "unknown"},
		"nothing":                         {"", "unknown"},
		"bufconn":                         {"bufconn", "unknown"},
		"pipe":                            {"pipe", "unknown"},
		"nil":                             {"<nil>", "unknown"},
		"a port alone":                    {":80", "unknown"},
		"a name":                          {"localhost:80", "unknown"},
		"IPv4 with a zero before":         {"192.0.2.07:80", "unknown"},
		"IPv4 with three parts":           {"192.0.2:80", "unknown"},
		"IPv4 in brackets":                {"[192.0.2.7]:80", "unknown"},
		"IPv4 with a zone":                {"192.0.2.7%eth0:80", "unknown"},
		"an empty port":                   {"192.0.2.7:", "unknown"},
		"a port that is none":             {"192.0.2.7:http", "unknown"},
		"a port with a sign":              {"192.0.2.7:+80", "unknown"},
		"a port with another":             {"[2001:db8::1]:8:0", "unknown"},
		"a hidden port":                   {"192.0.2.7:_http", "192.0.2.7"},
		"a hidden port without a name":    {"192.0.2.7:_", "unknown"},
		"a hidden port beyond ASCII":      {"192.0.2.7:_\u0141", "unknown"}, // its low byte is A
		"a port that is too long":         {"192.0.2.7:123456", "unknown"},
		"brackets that don't close":       {"[2001:db8::1", "unknown"},
		"brackets of nothing":             {"[]:80", "unknown"},
		"something behind brackets":       {"[2001:db8::1]x", "unknown"},
		"a character behind brackets":     {"[2001:db8::1]]", "unknown"},
		"a CIDR":                          {"192.0.2.0/24", "unknown"},
		"a space":                         {" 192.0.2.7:80", "unknown"},
		"what stands for it":              {"unknown", "unknown"},
		"a newline":                       {"192.0.2.7\n:80", "unknown"},
		"two addresses":                   {"192.0.2.7, 192.0.2.8", "unknown"},
		"IPv6 that ends in a wrong port":  {"[2001:db8::1]:port", "unknown"},
		"IPv6 with nine groups":           {"[1:2:3:4:5:6:7:8:9]:80", "unknown"},
		"IPv6 with a zone and no name":    {"[fe80::1%]:80", "unknown"},
		"full-width digits":               {"１92.0.2.7:80", "unknown"},
		"the invalid address of netip":    {"invalid AddrPort", "unknown"},
		"the invalid address of net":      {"?0102:80", "unknown"},
		"an abstract Unix socket":         {"@client", "unknown"},
		"IPv6 of a peer with a long zone": {"[fe80::1%" + strings.Repeat("x", 1000) + "]:80", "fe80::/64"},
	} {
		for _, ip := range []*identity.ClientIP{identity.Peer, nil, {}} {
			key := identity.Key{ip.Source()}
			if got := key.Of(from(c.remote)); got != c.want || key.Err() != nil {
				t.Errorf("%s: %q is %q, want %q (%v)", name, c.remote, got, c.want, key.Err())
			}
		}
	}
}

func TestNetworks(t *testing.T) {
	for _, c := range []struct {
		v4, v6               int
		remote, want, source string
	}{
		{32, 64, "192.0.2.77:1", "192.0.2.77", "client_ip"},
		{24, 64, "192.0.2.77:1", "192.0.2.0/24", "client_ip/24/64"},
		{24, 64, "[::ffff:192.0.2.77]:1", "192.0.2.0/24", "client_ip/24/64"},
		{1, 1, "192.0.2.77:1", "128.0.0.0/1", "client_ip/1/1"},
		{32, 128, "[2001:db8:1:2::7]:1", "2001:db8:1:2::7", "client_ip/128"},
		{32, 128, "[fe80::1%eth0]:1", "fe80::1", "client_ip/128"},
		{32, 56, "[2001:db8:1:2ff::7]:1", "2001:db8:1:200::/56", "client_ip/56"},
		{32, 48, "[2001:db8:1:2::7]:1", "2001:db8:1::/48", "client_ip/48"},
		{32, 1, "[ff02::7]:1", "8000::/1", "client_ip/1"},
		{32, 48, "@", "unknown", "client_ip/48"},
		{24, 48, "", "unknown", "client_ip/24/48"},
	} {
		s := identity.Peer.Network(c.v4, c.v6)
		if got := s.Value(from(c.remote)); got != c.want || s.String() != c.source || s.Err() != nil {
			t.Errorf("%s by %d and %d bits is %q of %s, want %q of %s (%v)", c.remote, c.v4, c.v6, got, s, c.want, c.source, s.Err())
		}
	}
}

// Pitfall H8: bits that there are not are an error of the Source, not of the first request.
func TestNetworksThatAreRefused(t *testing.T) {
	for _, bits := range [][2]int{{0, 64}, {33, 64}, {-1, 64}, {32, 0}, {32, 129}, {32, -64}, {1 << 40, 64}} {
		s := identity.Peer.Network(bits[0], bits[1])
		var e *identity.SourceError
		if !asSourceError(s.Err(), &e) || !strings.HasPrefix(e.Field, "client_ip's bits") || s.Value(from("192.0.2.7:1")) != "" {
			t.Errorf("bits %v: %v, and finds %q", bits, s.Err(), s.Value(from("192.0.2.7:1")))
		}
	}
}

func TestNetworkOf(t *testing.T) {
	for _, c := range []struct {
		addr   netip.Addr
		v4, v6 int
		want   string
	}{
		{netip.Addr{}, 32, 64, "unknown"},
		{netip.MustParseAddr("192.0.2.7"), 32, 64, "192.0.2.7"},
		{netip.MustParseAddr("::ffff:192.0.2.7"), 24, 64, "192.0.2.0/24"},
		{netip.MustParseAddr("192.0.2.7"), 33, 64, "192.0.2.7"},
		{netip.MustParseAddr("192.0.2.7"), -1, 64, "192.0.2.7"},
		{netip.MustParseAddr("192.0.2.7"), 0, 64, "0.0.0.0/0"},
		{netip.MustParseAddr("fe80::1%eth0"), 32, 128, "fe80::1"},
		{netip.MustParseAddr("fe80::1%eth0"), 32, 10, "fe80::/10"},
		{netip.MustParseAddr("2001:db8::1"), 32, 1000, "2001:db8::1"},
	} {
		if got := identity.NetworkOf(c.addr, c.v4, c.v6); got != c.want {
			t.Errorf("%s by %d and %d bits is %q, want %q", c.addr, c.v4, c.v6, got, c.want)
		}
	}
}

// No address can be written so that it is taken for one that can't be used.
func TestH4NoAddressIsUnknown(t *testing.T) {
	if addr, err := netip.ParseAddr("unknown"); err == nil {
		t.Errorf("unknown is the address %s", addr)
	}
}

// Pitfall H4 with the real thing: what is unusable differs from system to system, and its key does not.
func TestH4RequestsOverSocketsWithoutAddresses(t *testing.T) {
	memory := bufconn.Listen(1 << 16)
	path := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	proxied, err := identity.Behind("X-Forwarded-For", "unix")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		listener net.Listener
		dial     func(context.Context) (net.Conn, error)
		proxied  string
	}{
		{"bufconn", memory, memory.DialContext, "unknown"},
		{"unix", unix, func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) }, "192.0.2.7"},
	} {
		keys := make(chan [2]string, 1)
		s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			keys <- [2]string{identity.Key{identity.Peer.Source()}.Of(r), identity.Key{proxied.Source()}.Of(r)}
		})}
		go func() { _ = s.Serve(c.listener) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }}}
		r := httptest.NewRequest(http.MethodGet, "http://server/", nil)
		r.RequestURI = ""
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
		if _, err := client.Do(r); err != nil {
			t.Fatal(err)
		}
		if got, want := <-keys, [2]string{"unknown", c.proxied}; got != want {
			t.Errorf("over %s: %q, want %q", c.name, got, want)
		}
		client.CloseIdleConnections()
		_ = s.Close()
	}
}

// Pitfall H4 with the real thing: the peer of a Unix socket chooses the file that it is bound to, relative to where it runs, and so what RemoteAddr is.
func TestH4NamesOfUnixSocketsAreNoAddresses(t *testing.T) {
	t.Chdir(t.TempDir())
	l, err := net.Listen("unix", "server")
	if err != nil {
		t.Fatal(err)
	}
	trusting := behind(t, "X-Forwarded-For", "10.0.0.0/8")
	keys := make(chan [3]string, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys <- [3]string{r.RemoteAddr, identity.Key{identity.Peer.Source()}.Of(r), identity.Key{trusting.Source()}.Of(r)}
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for _, name := range []string{"192.0.2.1", "10.0.0.7", "10.0.0.7:80", "2001:db8::1", "[2001:db8::1]:80"} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: &net.UnixAddr{Net: "unix", Name: name}}).DialContext(ctx, "unix", "server")
		}}}
		r := httptest.NewRequest(http.MethodGet, "http://server/", nil)
		r.RequestURI = ""
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if got, want := <-keys, [3]string{name, "unknown", "unknown"}; got != want {
			t.Errorf("bound to %s: %q, want %q", name, got, want)
		}
	}
}

func TestAnAddressOfIPv4IsFoundWithoutAllocating(t *testing.T) {
	key := identity.Key{identity.Peer.Source()}
	behind, err := identity.Behind("X-Forwarded-For", "10.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	proxied := identity.Key{behind.Source()}
	r := from("192.0.2.7:4711")
	of := from("10.0.0.1:4711")
	of.Header.Set("X-Forwarded-For", "192.0.2.7, 10.0.0.2")
	var got string
	for name, f := range map[string]func(){"peer": func() { got = key.Of(r) }, "behind a proxy": func() { got = proxied.Of(of) }} {
		if n := testing.AllocsPerRun(100, f); n != 0 || got != "192.0.2.7" {
			t.Errorf("%s: %v allocations for %q", name, n, got)
		}
	}
}

func BenchmarkKeyOfPeer(b *testing.B) {
	for _, remote := range []string{"192.0.2.7:4711", "[2001:db8:1:2::7]:4711"} {
		b.Run(remote, func(b *testing.B) {
			key, r := identity.Key{identity.Peer.Source()}, from(remote)
			b.ReportAllocs()
			for b.Loop() {
				if key.Of(r) == "" {
					b.Fatal("no key")
				}
			}
		})
	}
}
