package proxied_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"

	"github.com/weirlimit/weir/internal/server/proxied"
)

func ExampleListen() {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	l := proxied.Listen(inner, proxied.Options{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})

	proxy, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	_, _ = io.WriteString(proxy, "PROXY TCP4 192.0.2.7 10.0.0.1 50000 6380\r\nhello")
	_ = proxy.Close()

	c, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(c)
	fmt.Printf("%v says %s, %v\n", c.RemoteAddr(), text, err)
	fmt.Println(c.Close(), l.Close(), l.Refused())
	// Output:
	// 192.0.2.7:50000 says hello, <nil>
	// <nil> <nil> 0
}
