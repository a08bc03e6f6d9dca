package testengine

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Memcached starts a memcached server. Restart loses what it holds.
func Memcached(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, engine{
		scheme: "memcached://",
		binary: onPath("memcached"),
		args: func(s *Server) []string {
			// It won't run as root unless it is told to.
			return append([]string{"-l", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "0", "-u", "root"}, args...)
		},
		ready: memcachedReady,
		stop:  syscall.SIGTERM,
		crash: os.Kill,
	})
}

func memcachedReady(s *Server) error {
	conn, err := dial(s)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprint(conn, "stats\r\nquit\r\n")
	var stats strings.Builder
	for chunk := make([]byte, 4096); err == nil; {
		var n int
		n, err = conn.Read(chunk)
		stats.Write(chunk[:n])
	}
	if id := field(stats.String(), "STAT pid "); id != strconv.Itoa(s.Pid()) {
		return fmt.Errorf("process %q answers on %s, and should be %d", id, s.Addr(), s.Pid())
	}
	return nil
}
