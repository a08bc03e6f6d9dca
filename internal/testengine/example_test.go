package testengine_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/weirlimit/weir/internal/testengine"
)

// The examples are tests of yours: t is their argument, m that of TestMain.
var (
	t *testing.T
	m *testing.M
)

// A server of its own for one test, which crashes, hangs, and comes back.
func ExampleServer() {
	server := testengine.Redis(t, "--appendonly", "yes")
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
	server := testengine.Memcached(t)
	proxy := testengine.NewProxy(t, server)
	fmt.Println("connect to", proxy.Addr())
	proxy.Set(testengine.Fault{Replies: testengine.Flow{Drop: true}})
	proxy.Heal()
	proxy.CloseRequests()
	proxy.CloseReplies()
	proxy.Cut()
}

// One server for all tests of a package.
func ExampleShared() {
	postgres := testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Postgres(t) })
	func() { // TestMain
		code := m.Run()
		testengine.Close()
		os.Exit(code)
	}()
	func() { // a test
		fmt.Println(postgres(t).URL())
	}()
}

// The other engines.
func Example() {
	fmt.Println(testengine.Memcached(t, "-m", "64").URL())
	fmt.Println(testengine.Valkey(t).URL())
	cluster := testengine.RedisCluster(t)
	fmt.Println(cluster.Addrs(), cluster.URL())
	watched := testengine.RedisSentinel(t)
	fmt.Println(watched.Addrs(), watched.Master(), watched.URL())
}
