package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlimit/weir/server"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
	"github.com/weirlimit/weir/store/storetest"
)

// patience is for a busy machine.
const patience = 20 * time.Second

func TestMain(m *testing.M) {
	storetest.Main(m, func(url string, o storetest.Options) (store.Store, error) {
		return remote.Open(context.Background(), url, remote.Options{TrustClientTime: o.TrustClientTime, Timeout: patience})
	})
}

// TestConformance holds the store to what every store must do, over a server that keeps its state in memory: as exactly as that.
func TestConformance(t *testing.T) {
	d := start(t, server.Config{TrustClientTime: true})
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return open(t, d.url(), remote.Options{TrustClientTime: o.TrustClientTime, Timeout: patience})
		},
		Process: d.url(),
		Restart: d.restart,
		Tick:    time.Nanosecond,
	})
}
