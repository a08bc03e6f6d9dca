package proxied_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/proxied"
	"github.com/weirlimit/weir/internal/testpipe"
)

// own stands for the address of the connection itself.
const own = "127.0.0.1:"

func TestHeadersSayWhoseTheConnectionIs(t *testing.T) {
	v4, v6 := "\xc0\x00\x02\x07\x0a\x00\x00\x01\x04\xd2\x18\xec", "\x20\x01\x0d\xb8"+strings.Repeat("\x00", 11)+"\x07"+strings.Repeat("\x00", 15)+"\x01\x04\xd2\x18\xec"
	mapped := strings.Repeat("\x00", 10) + "\xff\xff\xc0\x00\x02\x07" + strings.Repeat("\x00", 16) + "\x04\xd2\x18\xec"
	unix := "/run/client\n" + strings.Repeat("\x00", 216-12)
	tests := []struct {
		name, header, want string
	}{
		{"V1OverIPv4", "PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\n", "192.0.2.7:1234"},
		{"V1OverIPv6", "PROXY TCP6 2001:db8::7 fd00::1 1234 6380\r\n", "[2001:db8::7]:1234"},
		{"V1Mapped", "PROXY TCP6 ::ffff:192.0.2.7 ::1 1234 6380\r\n", "192.0.2.7:1234"},
		{"V1Unknown", "PROXY UNKNOWN\r\n", own},
		{"V1UnknownOfSomebody", "PROXY UNKNOWN ffff:f ffff:f 65535 65535\r\n", own},
		{"V1Longest", "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n", own},
		{"V1OfTheLibrary", header(t, 1, tcp("192.0.2.7:1234"), tcp("10.0.0.1:6380")), "192.0.2.7:1234"},
		{"V2OverIPv4", two(0x21, 0x11, v4), "192.0.2.7:1234"},
		{"V2OverIPv6", two(0x21, 0x21, v6), "[2001:db8::7]:1234"},
		{"V2Mapped", two(0x21, 0x21, mapped), "192.0.2.7:1234"},
		{"V2Datagrams", two(0x21, 0x12, v4), "192.0.2.7:1234"},
		{"V2WithMore", two(0x21, 0x11, v4+"\x04\x00\x03abc\x20\x00\x05\x01\x00\x00\x00\x00"), "192.0.2.7:1234"},
		{"V2WithMuchMore", two(0x21, 0x11, v4+"\x04\x0f\xf1"+strings.Repeat("x", 0xff1)), "192.0.2.7:1234"},
		{"V2Local", two(0x20, 0x00, ""), own},
		{"V2LocalWithAnAddress", two(0x20, 0x11, v4), own},
		{"V2LocalWithLess", two(0x20, 0x11, "abc"), own},
		{"V2OfNobody", two(0x21, 0x00, ""), own},
		{"V2OfNobodyWithMore", two(0x21, 0x00, "\x04\x00\x03abc"), own},
		{"V2OfNobodyWithMuchMore", two(0x21, 0x00, strings.Repeat("x", 4096)), own},
		{"V2Unix", two(0x21, 0x31, unix), own},
		{"V2UnixDatagrams", two(0x21, 0x32, unix), own},
		{"V2OfTheLibrary", header(t, 2, tcp("[2001:db8::7]:1234"), tcp("[fd00::1]:6380")), "[2001:db8::7]:1234"},
		{"V2LocalOfTheLibrary", header(t, 2, nil, nil), own},
	}
	l := listen(t, proxied.Options{From: loopback})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for way, pieces := range map[string][]string{
				"together":  {test.header + "hello"},
				"apart":     {test.header, "hello"},
				"in pieces": strings.Split(test.header+"hello", ""),
			} {
				first, rest, _ := strings.Cut(ask(t, l, pieces...), "\n")
				if first != test.want && (test.want != own || !strings.HasPrefix(first, own)) || rest != "hello" {
					t.Errorf("%s: the client is %q, who said %q; want %s and hello", way, first, rest, test.want)
				}
			}
		})
	}
	if n := l.Refused(); n != 0 {
		t.Errorf("%d were refused", n)
	}
}

func TestHeadersThatWontDoCloseTheConnection(t *testing.T) {
	tests := []struct {
		name, sent string
	}{
		{"None", "PING\r\n"},
		{"HTTP", "POST /v1/take HTTP/1.1\r\nHost: h\r\n\r\n"},
		{"RESP", "*1\r\n$4\r\nPING\r\n"},
		{"Garbage", "\x16\x03\x01\x02\x00"},
		{"V1CutShort", "PROXY TCP4 192.0.2.7"},
		{"V1InLowerCase", "proxy TCP4 192.0.2.7 10.0.0.1 1 2\r\n"},
		{"V1WithoutReturn", "PROXY TCP4 192.0.2.7 10.0.0.1 1 2\n"},
		{"V1TooLong", "PROXY UNKNOWN " + strings.Repeat("x", 92) + "\r\n"},
		{"V1Endless", "PROXY TCP4 " + strings.Repeat("1", 100000)},
		{"V1OtherFamily", "PROXY TCP4 2001:db8::7 fd00::1 1 2\r\n"},
		{"V1NoAddress", "PROXY TCP4 example.com 10.0.0.1 1 2\r\n"},
		{"V1Zone", "PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n"},
		{"V1NoPort", "PROXY TCP4 192.0.2.7 10.0.0.1\r\n"},
		{"V1PortTooLarge", "PROXY TCP4 192.0.2.7 10.0.0.1 65536 2\r\n"},
		{"V1PortWithZero", "PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n"},
		{"V1Spaces", "PROXY  TCP4 192.0.2.7 10.0.0.1 1 2\r\n"},
		{"V1OfDatagrams", "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n"},
		{"V1More", "PROXY TCP4 192.0.2.7 10.0.0.1 1 2 3\r\n"},
		{"V2SignatureOnly", "\r\n\r\n\x00\r\nQUIT\n"},
		{"V2SignatureCutShort", "\r\n\r\n\x00\r\nQU"},
		{"V2CutShort", two(0x21, 0x11, "\xc0\x00\x02\x07\x0a\x00\x00\x01\x04\xd2\x18\xec")[:20]},
		{"V2OtherVersion", two(0x31, 0x11, strings.Repeat("x", 12))},
		{"V2OtherCommand", two(0x22, 0x11, strings.Repeat("x", 12))},
		{"V2OtherFamily", two(0x21, 0x41, strings.Repeat("x", 12))},
		{"V2OtherTransport", two(0x21, 0x13, strings.Repeat("x", 12))},
		{"V2TooShort", two(0x21, 0x21, strings.Repeat("x", 35))},
		{"V2TooLong", two(0x21, 0x11, strings.Repeat("x", 4097))},
		{"V2OfNobodyTooLong", two(0x21, 0x00, strings.Repeat("x", 4097))},
		{"V2OfNobodyCutShort", two(0x21, 0x00, "abc")[:18]},
		{"V2OfNobodyWithoutALength", two(0x21, 0x00, "")[:15]},
	}
	l := listen(t, proxied.Options{From: loopback})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := l.Refused()
			if got := ask(t, l, test.sent); got != "" {
				t.Errorf("answered %q", got)
			}
			if got := l.Refused() - before; got != 1 {
				t.Errorf("%d more were refused, want 1", got)
			}
		})
	}
}

// Pitfall H3, in the PROXY protocol's words: who is no proxy can't say who it is.
func TestH3HeadersOfOthersAreWhatTheySend(t *testing.T) {
	l := listen(t, proxied.Options{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::/96")}})
	for _, sent := range []string{"PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\n", two(0x21, 0x11, strings.Repeat("x", 12)), "hello"} {
		first, rest, _ := strings.Cut(ask(t, l, sent), "\n")
		if !strings.HasPrefix(first, own) || rest != sent {
			t.Errorf("the client is %q, who said %q; want 127.0.0.1 and %q", first, rest, sent)
		}
	}
	if n := l.Refused(); n != 0 {
		t.Errorf("%d were refused", n)
	}
}

// Listening on all interfaces, a peer of IPv4 has an address of IPv6.
func TestMappedProxiesAreProxies(t *testing.T) {
	inner, err := net.Listen("tcp", "[::]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	l := proxied.Listen(inner, proxied.Options{From: loopback})
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PROXY TCP4 192.0.2.7 10.0.0.1 1234 6380\r\n")); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if got := accepted.RemoteAddr().String(); got != "192.0.2.7:1234" {
		t.Errorf("the client is %s, want that of the header", got)
	}
	if got, want := accepted.LocalAddr().String(), c.RemoteAddr().String(); got != want {
		t.Errorf("the local address is %s, want its own, %s", got, want)
	}
}

// A proxy on the same link has a zone in its address, which names the interface of this machine.
func TestProxiesWithAZoneAreProxies(t *testing.T) {
	inner := testpipe.New()
	l := proxied.Listen(inner, proxied.Options{From: []netip.Prefix{netip.MustParsePrefix("fe80::/10")}})
	defer l.Close()
	go func() {
		client, _ := inner.Dial(tcp("[fe80::1%eth0]:99"))
		_, _ = io.WriteString(client, hello)
	}()
	if got := accept(t, l).RemoteAddr().String(); got != "192.0.2.7:1234" {
		t.Errorf("the client is %s, want that of the header", got)
	}
}

// Who only looks whether the port is open, as load balancers do, is no reason for a line in the log.
func TestConnectionsThatSayNothingAreNotCounted(t *testing.T) {
	var log logged
	l := listen(t, proxied.Options{From: loopback, Log: log.logger()})
	if got := ask(t, l); got != "" {
		t.Errorf("answered %q", got)
	}
	if got := ask(t, l, "hello"); got != "" || l.Refused() != 1 {
		t.Errorf("answered %q, refused %d, want nothing and the one that said something", got, l.Refused())
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "refused=1") || !strings.Contains(text, "proxy=127.0.0.1:") {
		t.Errorf("log: %s", text)
	}
}

func TestTheLogIsNotFlooded(t *testing.T) {
	var log logged
	l := listen(t, proxied.Options{From: loopback, Log: log.logger()})
	for range 20 {
		ask(t, l, "hello")
	}
	if n := strings.Count(log.String(), "\n"); n < 1 || n > 2 || l.Refused() != 20 { // a line every ten seconds
		t.Errorf("%d lines for %d refused, want one", n, l.Refused())
	}
}
