package redis_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
	"github.com/weirlimit/weir/store/storetest"
)

// harness is that of every way to run Redis.
func harness(url string) storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			return openURL(t, url, redis.Options{TrustClientTime: o.TrustClientTime})
		},
		Process: url,
		Refuses: refuses,
	}
}

func refuses(l algorithm.Limit) string {
	if l = l.Canonical(); max(l.Count, l.Burst, l.Queue) > 1<<51 {
		return "its numbers are exact to 53 bits"
	}
	return ""
}

func TestConformance(t *testing.T) {
	s := testengine.Redis(t, "--appendonly", "yes", "--appendfsync", "no")
	h := harness(s.URL())
	h.Restart, h.Persistent = s.Restart, true
	storetest.Run(t, h)
}

func TestConformanceOfValkey(t *testing.T) {
	s := testengine.Valkey(t)
	h := harness(s.URL())
	h.Restart = s.Restart
	storetest.Run(t, h)
}

func TestConformanceOfCluster(t *testing.T) {
	h := harness(testengine.RedisCluster(t).URL())
	h.Deployment = true
	storetest.Run(t, h)
}

func TestConformanceWithSentinels(t *testing.T) {
	s := testengine.RedisSentinel(t)
	h := harness("redis+sentinel://" + strings.Join(s.Addrs(), ",") + "/" + s.Master())
	h.Deployment = true
	storetest.Run(t, h)
}
