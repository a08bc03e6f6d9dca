package testengine

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Sentinel is one Redis master with two replicas, and three sentinels that watch it and choose another when it has been
// gone for a second.
type Sentinel struct {
	Primary   *Server   // the master of the beginning
	Replicas  []*Server // two
	Sentinels []*Server // three
}

// RedisSentinel starts them. It returns when all sentinels know each other and the replicas.
func RedisSentinel(t testing.TB, args ...string) *Sentinel {
	t.Helper()
	s := &Sentinel{Primary: Redis(t, args...)}
	port := strconv.Itoa(s.Primary.port)
	for range 2 {
		s.Replicas = append(s.Replicas, Redis(t, append([]string{"--replicaof", "127.0.0.1 " + port}, args...)...))
	}
	for _, r := range s.Replicas {
		if err := r.says("master_link_status:up", "INFO", "replication"); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		s.Sentinels = append(s.Sentinels, start(t, sentinel(s.Master(), port)))
	}
	for _, each := range s.Sentinels {
		if err := eventually(func() error { return s.known(each) }); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func sentinel(name, port string) engine {
	e := redis("redis-server", nil)
	e.prepare = func(s *Server) error {
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor %s 127.0.0.1 %s 2\n"+
			"sentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 5000\n", s.port, s.dir, name, port)
		return os.WriteFile(sentinelFile(s), []byte(text), 0o600)
	}
	e.args = func(s *Server) []string { return []string{sentinelFile(s), "--sentinel"} }
	return e
}

func sentinelFile(s *Server) string { return filepath.Join(s.dir, "sentinel.conf") }

// known says what a sentinel does not know yet.
func (s *Sentinel) known(by *Server) error {
	text, err := by.ask("SENTINEL", "MASTER", s.Master())
	if err != nil {
		return err
	}
	words := strings.Split(text, "\n") // names and values in turn
	value := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		value[words[i]] = words[i+1]
	}
	if value["num-slaves"] != "2" || value["num-other-sentinels"] != "2" || value["flags"] != "master" {
		return fmt.Errorf("%w: sentinel on %s knows %v", errNotReady, by.Addr(), value)
	}
	return nil
}

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string {
	var all []string
	for _, each := range s.Sentinels {
		all = append(all, each.Addr())
	}
	return all
}

// Master returns the name by which the sentinels know the master.
func (s *Sentinel) Master() string { return "mymaster" }

// URL returns redis+sentinel://host:port,host:port,host:port/mymaster
func (s *Sentinel) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Master()
}
