package faults

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/testengine"
)

func redis(name, url string) system {
	return system{name: name, url: url, timeout: "timeout", prefix: "prefix"}
}

// A server with appendfsync always writes each command to the disk before the reply.
func TestRedis(t *testing.T) {
	server := testengine.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := redis("Redis", server.URL()).suite(t)
	s.atomic = true
	admin := client(t, server)
	s.suffer(t, killed(server, ""))
	s.suffer(t, stopped(server))
	s.suffer(t, closed(server))
	s.network(t, server)
	s.suffer(t, fault{
		name: "memory is full", refusal: "OOM",
		strike: commands(admin, "CONFIG SET maxmemory 1"),
		mend:   commands(admin, "CONFIG SET maxmemory 0"),
	})
	s.suffer(t, fault{
		name: "read-only replica", refusal: "READONLY",
		strike: commands(admin, "REPLICAOF 127.0.0.1 1"), // where no server is: the data stays
		mend:   commands(admin, "REPLICAOF NO ONE"),
	})
	commands(admin, "ACL SETUSER guarded on >first ~* &* +@all")(&run{TB: t})
	s.suffer(t, fault{
		name: "wrong password", refusal: "WRONGPASS", by: strings.Replace(s.url, "redis://", "redis://guarded:first@", 1),
		strike: commands(admin, "ACL SETUSER guarded resetpass >second", "CLIENT KILL USER guarded"),
		mend:   commands(admin, "ACL SETUSER guarded >first"),
	})
	s.suffer(t, fault{name: "SCRIPT FLUSH", strike: commands(admin, "SCRIPT FLUSH")})
	s.suffer(t, fault{name: "FLUSHALL", loses: lostAll, strike: commands(admin, "FLUSHALL")})
}

func TestRedisWithoutPersistence(t *testing.T) {
	server := testengine.Redis(t)
	redis("Redis, nothing on disk", server.URL()).suite(t).suffer(t, killed(server, lostAll))
}

// A server that comes back with a snapshot has lost the latest changes.
func TestRedisSnapshot(t *testing.T) {
	server := testengine.Redis(t)
	f := killed(server, "changes since the snapshot")
	save := commands(client(t, server), "SAVE")
	f.prepare = func(r *run) {
		save(r)
		r.load.more(r, callsBefore)
	}
	redis("Redis, snapshots", server.URL()).suite(t).suffer(t, f)
}

func TestRedisCluster(t *testing.T) {
	cluster := testengine.RedisCluster(t)
	s := redis("Redis Cluster", cluster.URL()).suite(t)
	s.suffer(t, fault{
		name:   "SIGSTOP of a master",
		strike: func(r *run) { cluster.Nodes[0].Pause(r) },
		mend:   func(r *run) { cluster.Nodes[0].Resume(r) },
	})
	s.suffer(t, fault{
		name: "CLUSTER FAILOVER",
		strike: func(r *run) {
			for _, replica := range cluster.Nodes[3:] {
				c := client(r, replica)
				until(r, c, "role:master", "INFO replication", "CLUSTER FAILOVER")
			}
		},
	})
	s.suffer(t, fault{
		name: "kill -9 of a master", loses: "what the replica lacked", fails: true,
		strike: func(r *run) { cluster.Nodes[3].KillAll(r) },
	})
}

func TestRedisSentinel(t *testing.T) {
	sentinel := testengine.RedisSentinel(t)
	redis("Redis Sentinel", sentinel.URL()).suite(t).suffer(t, fault{
		name: "kill -9 of the master", loses: "what the replica lacked", fails: true,
		strike: func(r *run) { sentinel.Primary.KillAll(r) },
	})
}

// client returns a client of a server, which connects again by itself.
func client(t testing.TB, server *testengine.Server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
		Dialer: net.Dialer{Timeout: patience}, ConnWriteTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func command(t testing.TB, c rueidis.Client, text string) (string, error) {
	words := strings.Fields(text)
	m, err := c.Do(t.Context(), c.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil {
		return "", err
	}
	if text, err := m.ToString(); err == nil {
		return text, nil
	}
	return fmt.Sprint(m), nil
}

// commands sends commands.
func commands(c rueidis.Client, texts ...string) func(*run) {
	return func(r *run) {
		r.Helper()
		for _, text := range texts {
			if _, err := command(r, c, text); err != nil {
				r.Fatalf("%s: %v", text, err)
			}
		}
	}
}

// until sends commands until the reply to the first has a text. Only the test binary has a
// deadline.
func until(r *run, c rueidis.Client, want, ask, before string) {
	r.Helper()
	for {
		if text, err := command(r, c, ask); err == nil && strings.Contains(text, want) {
			return
		}
		_, _ = command(r, c, before) // refused during a failover
		time.Sleep(20 * time.Millisecond)
	}
}
