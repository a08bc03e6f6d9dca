package testengine_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testengine.Close()
	os.Exit(code)
}

var shared = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Redis(t) })

func TestEnginesStartStopAndStartAgain(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *testengine.Server{
		"redis": testengine.Redis, "valkey": testengine.Valkey, "memcached": testengine.Memcached, "postgres": testengine.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			s := start(t)
			t.Logf("ready after %v", time.Since(began))
			addr, pid := s.Addr(), s.Pid()
			if !strings.Contains(s.URL(), addr) || !strings.HasPrefix(s.URL(), name) && name != "valkey" {
				t.Errorf("URL %s, address %s", s.URL(), addr)
			}
			for _, again := range []func(testing.TB){
				func(t testing.TB) { s.Restart(t) },
				func(t testing.TB) { s.Kill(t); s.Start(t) },
				func(t testing.TB) { s.KillAll(t); s.Start(t) },
				func(t testing.TB) { s.Pause(t); s.Resume(t); s.Stop(t); s.Start(t) },
			} {
				began = time.Now()
				again(t)
				t.Logf("ready again after %v", time.Since(began))
				if s.Addr() != addr || s.Pid() == pid {
					t.Errorf("address %s, process %d; were %s, %d", s.Addr(), s.Pid(), addr, pid)
				}
				pid = s.Pid()
			}
		})
	}
}

// TestServersEndWithTheirTest looks for a server's process after its test.
func TestServersEndWithTheirTest(t *testing.T) {
	var pid int
	if t.Run("test", func(t *testing.T) { pid = testengine.Redis(t).Pid() }); pid == 0 {
		t.Skip("Redis did not start")
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("process %d is still there", pid)
	}
}

func TestPostgresIsMadeOnce(t *testing.T) {
	testengine.Postgres(t)
	began := time.Now()
	testengine.Postgres(t)
	t.Logf("the second was ready after %v", time.Since(began))
}

func TestSharedServersOutliveTheirTest(t *testing.T) {
	var first, second int
	t.Run("first", func(t *testing.T) { first = shared(t).Pid() })
	if t.Run("second", func(t *testing.T) { second = shared(t).Pid() }); second == 0 {
		t.Skip("the server did not start")
	}
	if first != second || first == 0 {
		t.Errorf("processes %d and %d", first, second)
	}
}

func TestCluster(t *testing.T) {
	began := time.Now()
	c := testengine.RedisCluster(t)
	t.Logf("ready after %v", time.Since(began))
	if len(c.Nodes) != 6 || len(c.Addrs()) != 6 || strings.Count(c.URL(), ",") != 5 {
		t.Errorf("%s", c.URL())
	}
}

func TestSentinel(t *testing.T) {
	began := time.Now()
	s := testengine.RedisSentinel(t)
	t.Logf("ready after %v", time.Since(began))
	if len(s.Addrs()) != 3 || len(s.Replicas) != 2 || !strings.HasSuffix(s.URL(), "/"+s.Master()) {
		t.Errorf("%s", s.URL())
	}
}
