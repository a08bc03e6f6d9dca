package faults

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/testengine"
)

func memcached(server *testengine.Server) system {
	return system{name: "memcached", url: server.URL(), timeout: "timeout", prefix: "prefix"}
}

func TestMemcached(t *testing.T) {
	server := testengine.Memcached(t)
	s := memcached(server).suite(t)
	s.suffer(t, killed(server, lostAll))
	s.suffer(t, stopped(server))
	s.suffer(t, closed(server))
	s.suffer(t, fault{name: "flush_all", loses: lostAll, strike: func(r *run) { ask(r, server, "flush_all") }})
	s.network(t, server)
}

// A server with -M refuses new values when its memory is full. The memory is divided by the size of
// values, so the fill has all sizes of records.
func TestMemcachedFull(t *testing.T) {
	server := testengine.Memcached(t, "-M", "-m", "2")
	s := memcached(server)
	s.name = "memcached -M"
	s = s.suite(t)
	each := func(format func(b *strings.Builder, name string, size int)) func(*run) {
		return func(r *run) {
			var b strings.Builder
			for size := 16; size < 2000; size += size / 4 {
				for i := range 20_000 * 16 / size {
					format(&b, fmt.Sprintf("fill:%d:%d", size, i), size)
				}
			}
			ask(r, server, b.String()+"mn")
		}
	}
	s.suffer(t, fault{
		name: "memory is full", fails: true, refusal: "SERVER_ERROR",
		strike: each(func(b *strings.Builder, name string, size int) {
			fmt.Fprintf(b, "set %s 0 0 %d noreply\r\n%0*d\r\n", name, size, size, 0)
		}),
		mend: each(func(b *strings.Builder, name string, _ int) { fmt.Fprintf(b, "delete %s noreply\r\n", name) }),
	})
}

// ask sends commands and returns when the reply to the last arrives.
func ask(t testing.TB, server *testengine.Server, commands string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, commands, "\r\n")
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}
