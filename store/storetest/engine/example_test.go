package engine_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/weirlimit/weir/store/storetest/engine"
)

// The examples are tests of yours: t is their argument, m that of TestMain.
var (
	t *testing.T
	m *testing.M
)

// A server of its own for one test, which crashes, hangs, and comes back.
func ExampleServer() {
	server := engine.Redis(t, "--appendonly", "yes")
	fmt.Println("connect to", server.Addr(), "or", server.URL(), "of process", server.Pid())
	server.Restart(t)
	server.Stop(t)
	server.Start(t)
	server.Kill(t)
	server.Start(t)
	server.KillAll(t)
	server.Start(t)
	server.Pause(t)
	server.Resume(t)
}

// A network that loses replies for a while, and resets connections.
func ExampleProxy() {
	server := engine.Memcached(t)
	proxy := engine.NewProxy(t, server)
	fmt.Println("connect to", proxy.Addr())
	proxy.Set(engine.Fault{Replies: engine.Flow{Drop: true}})
	proxy.Heal()
	proxy.CloseRequests()
	proxy.CloseReplies()
	proxy.Cut()
}

// One server for all tests of a package.
func ExampleShared() {
	postgres := engine.Shared(func(t testing.TB) *engine.Server { return engine.Postgres(t) })
	func() { // TestMain
		code := m.Run()
		engine.Close()
		os.Exit(code)
	}()
	func() { // a test
		fmt.Println(postgres(t).URL())
	}()
}

// The other engines.
func Example() {
	fmt.Println(engine.Memcached(t, "-m", "64").URL())
	fmt.Println(engine.Valkey(t).URL())
	cluster := engine.RedisCluster(t)
	fmt.Println(cluster.Addrs(), cluster.URL())
	watched := engine.RedisSentinel(t)
	fmt.Println(watched.Addrs(), watched.Master(), watched.URL())
}
