package remote_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
	"github.com/weirlimit/weir/store/storetest"
)

// patience is a timeout beyond the reach of tests on a busy machine.
const patience = 10 * time.Minute

func TestMain(m *testing.M) {
	storetest.Main(m, func(urls string, o storetest.Options) (store.Store, error) {
		return remote.Open(context.Background(), choose(urls, o), remote.Options{TrustClientTime: o.TrustClientTime, Timeout: patience})
	}, testengine.Close)
}

// choose returns one of two URLs: that of the server which trusts its clients' time, or that of the one which does not.
func choose(urls string, o storetest.Options) string {
	trusting, own, _ := strings.Cut(urls, " ")
	if o.TrustClientTime {
		return trusting
	}
	return own
}

// harness is that of a pair of servers.
func harness(trusting, own *daemon) storetest.Harness {
	urls := trusting.url() + " " + own.url()
	return storetest.Harness{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return open(t, choose(urls, o), remote.Options{TrustClientTime: o.TrustClientTime, Timeout: patience})
		},
		Process: urls,
		Restart: func(t testing.TB) {
			trusting.restart(t)
			own.restart(t)
		},
	}
}

// TestConformance holds the store to what every store must do, over servers that keep their state in memory: as exactly as that.
func TestConformance(t *testing.T) {
	h := harness(startApart(t, true), startApart(t, false))
	h.Tick, h.InTurn = time.Nanosecond, true
	storetest.Run(t, h)
}

// TestConformanceOverRedis is the same over a server whose state is in Redis.
func TestConformanceOverRedis(t *testing.T) {
	url := testengine.Redis(t).URL() + "?timeout=" + patience.String()
	h := harness(start(t, server.Config{Store: url, TrustClientTime: true}), start(t, server.Config{Store: url}))
	h.Deployment = true
	h.Persistent = true // the state is not in what restarts
	h.Refuses = func(l algorithm.Limit) string {
		if l = l.Canonical(); max(l.Count, l.Burst, l.Queue) > 1<<51 {
			return "its numbers are exact to 53 bits in Redis"
		}
		return ""
	}
	storetest.Run(t, h)
}
