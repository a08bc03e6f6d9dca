package identity_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
)

func asSourceError(err error, e **identity.SourceError) bool { return errors.As(err, e) }

// A tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func behind(t tester, field string, proxies ...string) *identity.ClientIP {
	t.Helper()
	c, err := identity.Behind(field, proxies...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// told is a request of a peer with lines of a field.
func told(peer, field string, lines ...string) *http.Request {
	r := from(peer)
	for _, line := range lines {
		r.Header.Add(field, line)
	}
	return r
}

const (
	peer    = "10.0.0.1:4711" // of the trusted ones
	peerKey = "10.0.0.1"
)

var proxies = []string{"10.0.0.0/8", "2001:db8:ffff::/48", "::ffff:172.16.0.0/108", "192.0.2.250"}

// Pitfall H3, by X-Forwarded-For.
func TestH3XForwardedFor(t *testing.T) {
	long := strings.Repeat("1", 513)
	for name, c := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"a peer that is not trusted":           {"198.51.100.9:1", []string{"192.0.2.1"}, "198.51.100.9"},
		"one whose field ends with a proxy":    {"198.51.100.9:1", []string{"192.0.2.1, 10.0.0.2"}, "198.51.100.9"},
		"a peer that can't be read":            {"@", []string{"192.0.2.1"}, "unknown"},
		"no field":                             {peer, nil, peerKey},
		"one address":                          {peer, []string{"192.0.2.1"}, "192.0.2.1"},
		"from the right":                       {peer, []string{"203.0.113.1, 192.0.2.1"}, "192.0.2.1"},
		"through proxies":                      {peer, []string{"203.0.113.1, 192.0.2.1, 172.16.3.4,10.0.0.2 ,\t2001:db8:ffff::1"}, "192.0.2.1"},
		"a trusted address of its own":         {peer, []string{"192.0.2.1, 192.0.2.250"}, "192.0.2.1"},
		"proxies written in other ways":        {peer, []string{"192.0.2.1, ::ffff:10.0.0.2, [2001:db8:ffff::1%eth0]:80, 172.31.0.1:80"}, "192.0.2.1"},
		"two lines, in order":                  {peer, []string{"192.0.2.1", "192.0.2.2"}, "192.0.2.2"},
		"two lines, the last of proxies":       {peer, []string{"203.0.113.1, 192.0.2.1", "10.0.0.2, 10.0.0.3"}, "192.0.2.1"},
		"all trusted: the furthest":            {peer, []string{"10.0.0.4, 10.0.0.3", "10.0.0.2"}, "10.0.0.4"},
		"empty":                                {peer, []string{""}, peerKey},
		"spaces":                               {peer, []string{" \t "}, peerKey},
		"a blank element at the end":           {peer, []string{"192.0.2.1,"}, peerKey},
		"a blank element behind a proxy":       {peer, []string{"192.0.2.1, , 10.0.0.2"}, peerKey},
		"a blank element that is not met":      {peer, []string{" , 192.0.2.1"}, "192.0.2.1"},
		"a blank line at the end":              {peer, []string{"192.0.2.1", ""}, peerKey},
		"a blank line behind a proxy":          {peer, []string{"192.0.2.1", "", "10.0.0.2"}, peerKey},
		"a blank line that is not met":         {peer, []string{"", "192.0.2.1"}, "192.0.2.1"},
		"a blank element before a proxy":       {peer, []string{", 10.0.0.2"}, peerKey},
		"garbage":                              {peer, []string{"192.0.2.1, garbage"}, peerKey},
		"garbage behind a proxy":               {peer, []string{"192.0.2.1, garbage, 10.0.0.2"}, peerKey},
		"garbage that is not met":              {peer, []string{"garbage, 192.0.2.1"}, "192.0.2.1"},
		"unknown":                              {peer, []string{"192.0.2.1, unknown"}, peerKey},
		"hidden":                               {peer, []string{"192.0.2.1, _proxy"}, peerKey},
		"what does not belong into this field": {peer, []string{`192.0.2.1, for=192.0.2.2`}, peerKey},
		"quotes":                               {peer, []string{`192.0.2.1, "192.0.2.2"`}, peerKey},
		"a CIDR":                               {peer, []string{`192.0.2.1, 192.0.2.0/24`}, peerKey},
		"other spaces":                         {peer, []string{"192.0.2.1, \u00a0192.0.2.2"}, peerKey},
		"a port":                               {peer, []string{"192.0.2.1:4711"}, "192.0.2.1"},
		"IPv6":                                 {peer, []string{"2001:db8:1:2::3"}, "2001:db8:1:2::/64"},
		"IPv6 and a port":                      {peer, []string{"[2001:db8:1:2::3]:4711"}, "2001:db8:1:2::/64"},
		"mapped":                               {peer, []string{"::ffff:192.0.2.1"}, "192.0.2.1"},
		"a zone":                               {peer, []string{"fe80::1%eth0"}, "fe80::/64"},
		"a mapped peer":                        {"[::ffff:10.0.0.1]:1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a peer of IPv6":                       {"[2001:db8:ffff::9]:1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a peer beside that":                   {"[2001:db8:fffe::9]:1", []string{"192.0.2.1"}, "2001:db8:fffe::/64"},
		"a peer of a mapped network":           {"172.31.255.255:1", []string{"192.0.2.1"}, "192.0.2.1"},
		"a peer beside that network":           {"172.32.0.0:1", []string{"192.0.2.1"}, "172.32.0.0"},
		"32 proxies":                           {peer, []string{"192.0.2.1" + strings.Repeat(", 10.0.0.2", 31)}, "192.0.2.1"},
		"33 proxies":                           {peer, []string{"192.0.2.1" + strings.Repeat(", 10.0.0.2", 32)}, peerKey},
		"33 lines":                             {peer, append([]string{"192.0.2.1"}, strings.Split(strings.Repeat("10.0.0.2,", 31)+"10.0.0.2", ",")...), peerKey},
		"an element that is long by spaces":    {peer, []string{"192.0.2.2," + strings.Repeat(" ", 503) + "192.0.2.1"}, "192.0.2.1"},
		"an element that is too long":          {peer, []string{"192.0.2.2," + strings.Repeat(" ", 504) + "192.0.2.1"}, peerKey},
		"the first, too long":                  {peer, []string{strings.Repeat(" ", 504) + "192.0.2.1"}, peerKey},
		"the first, as long as can be":         {peer, []string{strings.Repeat(" ", 503) + "192.0.2.1"}, "192.0.2.1"},
		"long garbage":                         {peer, []string{"192.0.2.1, " + long}, peerKey},
		"long garbage behind a proxy":          {peer, []string{"192.0.2.1, " + long + ", 10.0.0.2"}, peerKey},
		"long garbage that is not met":         {peer, []string{strings.Repeat("x", 1<<20) + ", 192.0.2.1"}, "192.0.2.1"},
		"a megabyte":                           {peer, []string{strings.Repeat("x", 1<<20)}, peerKey},
		"a megabyte of proxies":                {peer, []string{strings.Repeat("10.0.0.2,", 1<<17) + "10.0.0.2"}, peerKey},
	} {
		ip := behind(t, "x-forwarded-for", proxies...)
		if got := ip.Source().Value(told(c.peer, "X-Forwarded-For", c.lines...)); got != c.want {
			t.Errorf("%s: %.80q from %s is %q, want %q", name, c.lines, c.peer, got, c.want)
		}
	}
}

// Pitfall H3, by Forwarded. The well-formed ones are those of RFC 7239 and such.
func TestH3Forwarded(t *testing.T) {
	for name, c := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"a peer that is not trusted":          {"198.51.100.9:1", []string{"for=192.0.2.1"}, "198.51.100.9"},
		"no field":                            {peer, nil, peerKey},
		"one":                                 {peer, []string{"for=192.0.2.1"}, "192.0.2.1"},
		"in any case":                         {peer, []string{"FoR=192.0.2.1;PROTO=http"}, "192.0.2.1"},
		"several parameters":                  {peer, []string{"proto=http;by=203.0.113.43;for=192.0.2.1;host=example.com"}, "192.0.2.1"},
		"IPv6":                                {peer, []string{`For="[2001:db8:cafe::17]"`}, "2001:db8:cafe::/64"},
		"IPv6 and a port":                     {peer, []string{`For="[2001:db8:cafe::17]:4711"`}, "2001:db8:cafe::/64"},
		"IPv4 and a port":                     {peer, []string{`for="192.0.2.1:4711"`}, "192.0.2.1"},
		"a hidden port":                       {peer, []string{`for="192.0.2.1:_http"`}, "192.0.2.1"},
		"quoted without need":                 {peer, []string{`for="192.0.2.1"`}, "192.0.2.1"},
		"backslashes":                         {peer, []string{`for="\1\92.0.2.1"`}, "192.0.2.1"},
		"without the quotes that it needs":    {peer, []string{`for=[2001:db8:cafe::17]:4711`}, "2001:db8:cafe::/64"},
		"from the right":                      {peer, []string{`for=192.0.2.43, for="[2001:db8:cafe::17]"`}, "2001:db8:cafe::/64"},
		"through proxies":                     {peer, []string{`for=203.0.113.1, for=192.0.2.1;by="_x", for="10.0.0.2:1" , For=10.0.0.3`}, "192.0.2.1"},
		"lines, in order":                     {peer, []string{`for=203.0.113.1`, `for=192.0.2.1`, `for=10.0.0.2, for=10.0.0.3`}, "192.0.2.1"},
		"all trusted":                         {peer, []string{`for=10.0.0.4`, `for=10.0.0.3, for=10.0.0.2`}, "10.0.0.4"},
		"a comma in quotes":                   {peer, []string{`for=203.0.113.1, for=192.0.2.1;x="a, for=203.0.113.2"`}, "192.0.2.1"},
		"a semicolon in quotes":               {peer, []string{`x=";for=203.0.113.2;";for=192.0.2.1`}, "192.0.2.1"},
		"a quote in quotes":                   {peer, []string{`for=203.0.113.1, for=192.0.2.1;x="\", for=203.0.113.2"`}, "192.0.2.1"},
		"a backslash at the end of quotes":    {peer, []string{`for=203.0.113.1;x="y, for=192.0.2.1;x="\\"`}, "192.0.2.1"},
		"quotes that a client leaves open":    {peer, []string{`for="203.0.113.1, for=192.0.2.1`}, "192.0.2.1"},
		"the same, and quotes of the proxy":   {peer, []string{`for="203.0.113.1, for="192.0.2.1"`}, "192.0.2.1"},
		"the same, over lines":                {peer, []string{`for="203.0.113.1`, `for=192.0.2.1`}, "192.0.2.1"},
		"a backslash that a client leaves":    {peer, []string{`for=203.0.113.1\, for="192.0.2.1"`}, "192.0.2.1"},
		"spaces and empty parameters":         {peer, []string{" ;; proto=http ; for=192.0.2.1 ;\t"}, "192.0.2.1"},
		"hidden":                              {peer, []string{`for=192.0.2.1, for=_gazonk`}, peerKey},
		"hidden behind a proxy":               {peer, []string{`for=192.0.2.1, for=_SEVKISEK, for=10.0.0.2`}, peerKey},
		"unknown":                             {peer, []string{`for=192.0.2.1, for=unknown`}, peerKey},
		"unknown and a port":                  {peer, []string{`for=192.0.2.1, for="unknown:80"`}, peerKey},
		"empty":                               {peer, []string{""}, peerKey},
		"a blank element":                     {peer, []string{`for=192.0.2.1,`}, peerKey},
		"a blank element behind a proxy":      {peer, []string{`for=192.0.2.1,, for=10.0.0.2`}, peerKey},
		"a blank line":                        {peer, []string{`for=192.0.2.1`, " "}, peerKey},
		"who asked is not told":               {peer, []string{`for=192.0.2.1, by=10.0.0.2;proto=http`}, peerKey},
		"told twice":                          {peer, []string{`for=192.0.2.1;for=192.0.2.1`}, peerKey},
		"told as nothing":                     {peer, []string{`for=192.0.2.1, for=`}, peerKey},
		"told as nothing in quotes":           {peer, []string{`for=192.0.2.1, for=""`}, peerKey},
		"no name":                             {peer, []string{`for=192.0.2.1, =192.0.2.2`}, peerKey},
		"no name beside the address":          {peer, []string{`for=192.0.2.1, =x;for=192.0.2.2`}, peerKey},
		"a name that is none":                 {peer, []string{`for=192.0.2.1, x y=z;for=192.0.2.2`}, peerKey},
		"a name in quotes":                    {peer, []string{`for=192.0.2.1, "x"=z;for=192.0.2.2`}, peerKey},
		"a comma behind a backslash":          {peer, []string{`for=203.0.113.1, for=192.0.2.1;x="a\,for=203.0.113.2\""`}, "192.0.2.1"},
		"backslashes before a quote":          {peer, []string{`for=203.0.113.1, for=192.0.2.1;x="\\\", for=203.0.113.2\\"`}, "192.0.2.1"},
		"no value":                            {peer, []string{`for=192.0.2.1, for`}, peerKey},
		"an address alone":                    {peer, []string{`192.0.2.1`}, peerKey},
		"a space before the value":            {peer, []string{`for= 192.0.2.1`}, peerKey},
		"a space behind the name":             {peer, []string{`for =192.0.2.1`}, peerKey},
		"two pairs without a semicolon":       {peer, []string{`for=192.0.2.1 proto=http`}, peerKey},
		"something behind quotes":             {peer, []string{`for="192.0.2.1"x`}, peerKey},
		"open quotes at the end":              {peer, []string{`for=192.0.2.2, for="192.0.2.1`}, peerKey},
		"quotes that a backslash leaves open": {peer, []string{`for=192.0.2.2, for="192.0.2.1\"`}, peerKey},
		"quotes within":                       {peer, []string{`for=192".0.2.1"`}, peerKey},
		"a backslash outside of quotes":       {peer, []string{`for=192.0.2.1\`}, peerKey},
		"a megabyte of quotes":                {peer, []string{strings.Repeat(`"`, 1<<20)}, peerKey},
		"a megabyte of backslashes":           {peer, []string{strings.Repeat(`\`, 1<<20) + `"`}, peerKey},
		"a megabyte before":                   {peer, []string{strings.Repeat(`"\,`, 1<<19) + `",for=192.0.2.1`}, "192.0.2.1"},
		"a long element":                      {peer, []string{`for=192.0.2.2,for=192.0.2.1;x="` + strings.Repeat(",", 494) + `"`}, "192.0.2.1"},
		"an element that is too long":         {peer, []string{`for=192.0.2.2,for=192.0.2.1;x="` + strings.Repeat(",", 495) + `"`}, peerKey},
	} {
		ip := behind(t, "forwarded", proxies...)
		if got := ip.Source().Value(told(c.peer, "Forwarded", c.lines...)); got != c.want {
			t.Errorf("%s: %.80q from %s is %q, want %q", name, c.lines, c.peer, got, c.want)
		}
	}
}

// Pitfall H3, by a field that has one address.
func TestH3OneAddress(t *testing.T) {
	for name, c := range map[string]struct {
		peer  string
		lines []string
		want  string
	}{
		"a peer that is not trusted": {"198.51.100.9:1", []string{"192.0.2.1"}, "198.51.100.9"},
		"one":                        {peer, []string{" 192.0.2.1 "}, "192.0.2.1"},
		"a trusted one":              {peer, []string{"10.0.0.9"}, "10.0.0.9"},
		"IPv6 and a port":            {peer, []string{"[2001:db8::1]:80"}, "2001:db8::/64"},
		"none":                       {peer, nil, peerKey},
		"empty":                      {peer, []string{""}, peerKey},
		"a list":                     {peer, []string{"192.0.2.1, 192.0.2.2"}, peerKey},
		"a list of proxies":          {peer, []string{"192.0.2.1, 10.0.0.2"}, peerKey},
		"two lines":                  {peer, []string{"192.0.2.1", "192.0.2.2"}, peerKey},
		"two lines of proxies":       {peer, []string{"192.0.2.1", "10.0.0.2"}, peerKey},
		"garbage":                    {peer, []string{"garbage"}, peerKey},
		"a megabyte":                 {peer, []string{strings.Repeat("1", 1<<20)}, peerKey},
	} {
		ip := behind(t, "X-Real-IP", proxies...)
		if got := ip.Source().Value(told(c.peer, "X-Real-Ip", c.lines...)); got != c.want {
			t.Errorf("%s: %.80q from %s is %q, want %q", name, c.lines, c.peer, got, c.want)
		}
	}
}

// Pitfall H3: a proxy that sets one field passes others on as a client wrote them.
func TestH3OneFieldIsTrusted(t *testing.T) {
	fields := map[string]string{"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.2", "X-Real-Ip": "192.0.2.3"}
	for field, want := range map[string]string{"X-Forwarded-For": "192.0.2.1", "Forwarded": "192.0.2.2", "X-Real-Ip": "192.0.2.3", "X-Client-Ip": peerKey} {
		r := from(peer)
		for name, line := range fields {
			r.Header.Set(name, line)
		}
		if got := behind(t, field, proxies...).Source().Value(r); got != want {
			t.Errorf("by %s it is %q, want %q", field, got, want)
		}
	}
}

// What is told over a Unix socket is believed if that is said, and if it is one.
func TestProxiesOnUnixSockets(t *testing.T) {
	local := func(a net.Addr) context.Context { return context.WithValue(t.Context(), http.LocalAddrContextKey, a) }
	unix, tcp := local(&net.UnixAddr{Name: "/run/weir.sock", Net: "unix"}), local(&net.TCPAddr{})
	for _, c := range []struct {
		proxies, remote string
		ctx             context.Context
		want            string
	}{
		{"unix", "@", t.Context(), "192.0.2.1"},
		{"unix", "@client", t.Context(), "192.0.2.1"},
		{"unix", "/run/client.sock", t.Context(), "192.0.2.1"},
		{"unix", "", unix, "192.0.2.1"},
		{"unix", "@", unix, "192.0.2.1"},
		{"unix", "", t.Context(), "unknown"},
		{"unix", "bufconn", t.Context(), "unknown"},
		{"unix", "@", tcp, "unknown"},
		{"unix", "10.0.0.1:1", t.Context(), "10.0.0.1"},
		{"unix", "10.0.0.1:1", unix, "192.0.2.1"},
		{"unix", "10.0.0.1", local(&net.UnixAddr{Net: "unixpacket"}), "192.0.2.1"},
		{"10.0.0.0/8", "10.0.0.1", unix, "unknown"},
		{"10.0.0.0/8", "10.0.0.1:1", unix, "unknown"},
		{"10.0.0.0/8", "[::ffff:10.0.0.1]:1", unix, "unknown"},
		{"10.0.0.0/8", "198.51.100.9", unix, "unknown"},
		{"10.0.0.0/8", "10.0.0.1", tcp, "192.0.2.1"},
		{"10.0.0.0/8", "10.0.0.1", t.Context(), "192.0.2.1"}, // of a request that no server of net/http has made
		{"10.0.0.0/8", "@", unix, "unknown"},
		{"10.0.0.0/8", "", unix, "unknown"},
	} {
		r := told(c.remote, "X-Forwarded-For", "192.0.2.1").WithContext(c.ctx)
		if got := behind(t, "X-Forwarded-For", c.proxies).Source().Value(r); got != c.want {
			t.Errorf("behind %s, %q is %q, want %q", c.proxies, c.remote, got, c.want)
		}
	}
}

// Pitfall H8: what makes no sense is an error of the constructor, which names the field, the value and what would do.
func TestProxiesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		field   string
		proxies []string
		want    string
	}{
		{"", []string{"10.0.0.0/8"}, "the proxies' field is empty; accepted: X-Forwarded-For, Forwarded, or"},
		{"X Forwarded", []string{"10.0.0.0/8"}, `the proxies' field is "X Forwarded"`},
		{"X-Forwarded-For:", []string{"10.0.0.0/8"}, `the proxies' field is "X-Forwarded-For:"`},
		{"Host", []string{"10.0.0.0/8"}, `the proxies' field is "Host"`},
		{"transfer-encoding", []string{"10.0.0.0/8"}, `the proxies' field is "transfer-encoding"`},
		{"TRAILER", []string{"10.0.0.0/8"}, `the proxies' field is "TRAILER"`},
		{"X-Forwarded-For", []string{"0.0.0.0/1", "128.0.0.0/1"}, "proxies is a list that has all addresses of IPv4 or of IPv6; accepted: an address"},
		{"X-Forwarded-For", []string{"10.0.0.1", "192.0.0.0/2", "0.0.0.0/2", "::1", "128.0.0.0/2", "64.0.0.0/2", "0.0.0.0/8", "unix"}, "proxies is a list that has all addresses"},
		{"X-Forwarded-For", []string{"10.0.0.0/8", "8000::/1", "::ffff:10.0.0.0/104", "::/2", "4000::/2"}, "proxies is a list that has all addresses"},
		{"X-Forwarded-For", []string{"::ffff:0.0.0.0/97", "128.0.0.0/1"}, "proxies is a list that has all addresses"},
		{"X-Forwarded-For", nil, "proxies is a list of 0; accepted: 1 to 1024"},
		{"X-Forwarded-For", make([]string, 1025), "proxies is a list of 1025"},
		{"X-Forwarded-For", []string{""}, "proxies[0] is empty; accepted: an address, a CIDR"},
		{"X-Forwarded-For", []string{"10.0.0.1", "10.0.0.0/33"}, `proxies[1] is "10.0.0.0/33"`},
		{"X-Forwarded-For", []string{"unix", "nginx"}, `proxies[1] is "nginx"`},
		{"X-Forwarded-For", []string{"10.0.0.1:80"}, `proxies[0] is "10.0.0.1:80"`},
		{"X-Forwarded-For", []string{"fe80::1%eth0"}, `proxies[0] is "fe80::1%eth0"`},
		{"X-Forwarded-For", []string{"fe80::%eth0/64"}, `proxies[0] is "fe80::%eth0/64"`},
		{"X-Forwarded-For", []string{"0.0.0.0/0"}, `proxies[0] is "0.0.0.0/0"; accepted: an address, a CIDR such as 10.0.0.0/8 or fd00::/8, but not all addresses`},
		{"X-Forwarded-For", []string{"::/0"}, `proxies[0] is "::/0"`},
		{"X-Forwarded-For", []string{"::ffff:0.0.0.0/96"}, `proxies[0] is "::ffff:0.0.0.0/96"`},
		{"X-Forwarded-For", []string{"::ffff:0.0.0.0/95"}, `proxies[0] is "::ffff:0.0.0.0/95"`},
		{"X-Forwarded-For", []string{strings.Repeat("1", 1000)}, `proxies[0] is "` + strings.Repeat("1", 100) + `"; accepted`},
	} {
		ip, err := identity.Behind(c.field, c.proxies...)
		var e *identity.SourceError
		if ip != nil || !asSourceError(err, &e) || !strings.HasPrefix(err.Error(), "identity: "+c.want) {
			t.Errorf("%q behind %.50q: %v, want %s", c.field, fmt.Sprint(c.proxies), err, c.want)
		}
	}
}

// Much is not all: what has one address less is accepted.
func TestProxiesThatAreMany(t *testing.T) {
	all := []string{"0.0.0.0", "::"} // and from each of these on as much again
	for i := 1; i <= 32; i++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 1<<(32-i)))), i).String())
	}
	if _, err := identity.Behind("X-Forwarded-For", all...); err == nil || !strings.Contains(err.Error(), "all addresses of IPv4") {
		t.Errorf("behind all: %v", err)
	}
	for i := range all {
		if all[i] == "::" {
			continue
		}
		if _, err := identity.Behind("X-Forwarded-For", append(slices.Clone(all[:i]), all[i+1:]...)...); err != nil {
			t.Errorf("behind all but %s: %v", all[i], err)
		}
	}
}
