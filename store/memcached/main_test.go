package memcached_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
	"github.com/weirlimit/weir/store/storetest"
)

// patience is a timeout beyond the reach of tests on a busy machine.
const patience = 10 * time.Minute

func TestMain(m *testing.M) { storetest.Main(m, openFor, testengine.Close) }

// openFor opens a store for the suite, also in processes of its own.
func openFor(url string, o storetest.Options) (store.Store, error) {
	return memcached.Open(context.Background(), url, memcached.Options{
		Prefix: "suite", TrustClientTime: o.TrustClientTime, Timeout: patience,
	})
}
