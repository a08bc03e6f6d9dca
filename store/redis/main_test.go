package redis_test

import (
	"os"
	"testing"
	"time"

	"github.com/weirlimit/weir/store/redis"
	"github.com/weirlimit/weir/store/storetest/engine"
)

var server = engine.Shared(func(t testing.TB) *engine.Server { return engine.Redis(t) })

func TestMain(m *testing.M) {
	code := m.Run()
	engine.Close()
	os.Exit(code)
}

// open returns a store on the server that tests share.
func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	return openURL(t, server(t).URL(), o)
}

func openURL(t testing.TB, url string, o redis.Options) *redis.Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second // the machine may be busy
	}
	s, err := redis.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
