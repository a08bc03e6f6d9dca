package limiters_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store/memory"
)

func restricted(r limiters.Rules) *limiters.Set {
	return limiters.NewRestricted(memory.New(memory.Options{}), r)
}

// TestMaxPeriod: neither a period nor a burst keeps a key for longer than MaxPeriod, over any
// protocol.
func TestMaxPeriod(t *testing.T) {
	s := restricted(limiters.Rules{MaxPeriod: 24 * time.Hour})
	for text, field := range map[string]string{
		"5/24h": "", "10/1s burst=864000": "", "sliding-window 5/24h": "", "10000/day": "", "leaky-queue 1/1s queue=86399": "",
		"5/25h": "period", "10000/month": "period", "10/1s burst=864001": "burst", "1/1s burst=1000000000": "burst",
		"leaky-queue 1/1s queue=86400": "queue", "concurrent 5 lease=25h": "lease", "fixed-window 5/8760h": "period",
	} {
		for _, name := range []string{"", "name"} {
			_, err := s.Bind([]byte(name), []byte(text), false)
			if refused, ok := errors.AsType[*weir.LimitError](err); ok != (field != "") || ok && refused.Field != field {
				t.Errorf("%q: %v; want an error about %q", text, err, field)
			}
		}
	}
	if _, err := s.Throttle(864_001, 10, time.Second); err == nil {
		t.Error("Throttle accepts a burst that takes longer than a day to come back")
	}
	if _, err := s.Throttle(16, 30, 25*time.Hour); err == nil {
		t.Error("Throttle accepts a period of 25 hours")
	}
	if _, err := s.Throttle(16, 30, time.Hour); err != nil {
		t.Error(err)
	}
}

func TestListedLimits(t *testing.T) {
	s := restricted(limiters.Rules{Listed: true, Limits: []algorithm.Limit{
		algorithm.MustParseLimit("100/1m"), algorithm.MustParseLimit("gcra 30/1m burst=16"),
	}})
	for text, ok := range map[string]bool{"100/1m": true, "100/60s": true, "gcra 30/1m burst=16": true, "101/1m": false, "100/2m": false} {
		if _, err := s.Bind([]byte("name"), []byte(text), false); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := s.Throttle(16, 30, time.Minute); err != nil {
		t.Error(err)
	}
	_, err := s.Throttle(17, 30, time.Minute)
	const want = `weir: limit has text "gcra 30/1m burst=17"; accepted: 100/1m, gcra 30/1m burst=16 (--allow-limits)`
	if err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

func TestNoLimits(t *testing.T) {
	s := restricted(limiters.Rules{Listed: true})
	_, err := s.Bind(nil, []byte("100/1m"), false)
	const want = `accepted: no limit that a request names (--allow-limits off), only those of policies`
	if err == nil || err.Error() != `weir: limit has text "100/1m"; `+want {
		t.Errorf("%v; want %s", err, want)
	}
	if s.Tick() != time.Nanosecond {
		t.Errorf("ticks of %v", s.Tick())
	}
}
