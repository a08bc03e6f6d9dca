package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
	"github.com/weirlimit/weir/store/storetest"
	"github.com/weirlimit/weir/store/storetest/engine"
)

func TestMain(m *testing.M) { storetest.Main(m, openFor, engine.Close) }

// openFor opens a store for the suite, also in processes of its own.
func openFor(url string, o storetest.Options) (store.Store, error) {
	return postgres.Open(context.Background(), url, postgres.Options{
		Prefix: "suite", TrustClientTime: o.TrustClientTime, Timeout: 30 * time.Second, // the machine may be busy
	})
}

// open opens a store on a table of the test's own.
func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
