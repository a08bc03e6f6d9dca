package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
	"github.com/weirlimit/weir/store/storetest"
)

// patience is a timeout beyond the reach of tests on a busy machine.
const patience = 10 * time.Minute

var server = testengine.Shared(func(t testing.TB) *testengine.Server { return testengine.Redis(t) })

func TestMain(m *testing.M) {
	storetest.Main(m, func(url string, o storetest.Options) (store.Store, error) {
		return redis.Open(context.Background(), url, redis.Options{TrustClientTime: o.TrustClientTime, Timeout: patience})
	}, testengine.Close)
}

// open returns a store on the server that tests share.
func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	return openURL(t, server(t).URL(), o)
}

func openURL(t testing.TB, url string, o redis.Options) *redis.Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience
	}
	s, err := redis.Open(context.Background(), url, o)
	for errors.Is(err, context.DeadlineExceeded) { // a busy machine, under the timeout of the test
		s, err = redis.Open(context.Background(), url, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
