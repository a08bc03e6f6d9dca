package limiters_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func newSet() *limiters.Set { return limiters.New(memory.New(memory.Options{})) }

func get(t *testing.T, s *limiters.Set, text string) *store.Bound {
	t.Helper()
	l, err := s.Bind(nil, []byte(text), false)
	if err != nil {
		t.Fatalf("Bind(%q): %v", text, err)
	}
	return l
}

func take(ctx context.Context, b *store.Bound) (weir.Decision, error) {
	v, err := b.Do(ctx, "k", algorithm.Op{Cost: 1}, store.OwnClock)
	return b.Decision(v), err
}

func throttle(t *testing.T, s *limiters.Set, capacity, count int64, period time.Duration) store.Binding {
	t.Helper()
	b, err := s.Throttle(capacity, count, period)
	if err != nil {
		t.Fatalf("Throttle(%d, %d, %v): %v", capacity, count, period, err)
	}
	return b
}

func TestEqualLimitsShareALimiter(t *testing.T) {
	s := newSet()
	first := get(t, s, "100/60s")
	for _, text := range []string{"100/1m", "100/m", "token-bucket 100/1m burst=100", "  100/1m ", "100/60s", "100/min", "100/minute", "100/1min", "100/60seconds"} {
		if get(t, s, text) != first {
			t.Errorf("%q has a limiter of its own, unlike 100/60s", text)
		}
	}
	for _, text := range []string{"101/1m", "100/1m burst=99", "gcra 100/1m"} {
		if get(t, s, text) == first {
			t.Errorf("%q shares the limiter of 100/60s", text)
		}
	}
}

func TestBadTextNamesTheField(t *testing.T) {
	s := newSet()
	for text, field := range map[string]string{
		"": "text", "nonsense": "text", "0/1m": "count", "5/1y": "period", "warp 5/1m": "algorithm", "5/1m burst=x": "burst",
	} {
		var refused *weir.LimitError
		if _, err := s.Bind(nil, []byte(text), false); !errors.As(err, &refused) || refused.Field != field {
			t.Errorf("Bind(%q): %v; want an error about %s", text, err, field)
		}
	}
}

func TestForgottenLimiterKeepsItsState(t *testing.T) {
	s, ctx := newSet(), context.Background()
	if d, err := take(ctx, get(t, s, "1/1h")); err != nil || !d.Allowed {
		t.Fatalf("first take: %+v, %v", d, err)
	}
	first := get(t, s, "1/1h")
	again := first
	for i := 0; again == first; i += 10_000 { // others drop it by chance
		if i == 1_000_000 {
			t.Fatal("the limiter was not dropped by a million others: the set is not bounded")
		}
		for j := range 10_000 {
			get(t, s, fmt.Sprintf("%d/1h", i+j+2))
		}
		again = get(t, s, "1/1h")
	}
	if d, err := take(ctx, again); err != nil || d.Allowed {
		t.Errorf("take after the limiter was dropped: %+v, %v; want a denial", d, err)
	}
}

func TestRememberedLimitAllocatesNothing(t *testing.T) {
	s, text := newSet(), []byte("100/60s")
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Bind(nil, text, false) }); n != 0 {
		t.Errorf("Bind allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Throttle(15, 30, time.Minute) }); n != 0 {
		t.Errorf("Throttle allocates %v times", n)
	}
}

func TestConcurrentCallersGetOneLimiter(t *testing.T) {
	s := newSet()
	found := make([]*store.Bound, 64)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() { found[i], _ = s.Bind(nil, []byte("7/1m"), false) })
	}
	wg.Wait()
	for _, l := range found {
		if l == nil || l != found[0] {
			t.Fatal("concurrent callers were given different limiters")
		}
	}
}

func TestThrottleStateBelongsToTheKeyAlone(t *testing.T) {
	s, ctx, now := newSet(), context.Background(), int64(1_700_000_000_000_000_000)
	take := func(b store.Binding) algorithm.Verdict {
		v, err := b.Do(ctx, "k", algorithm.Op{Cost: 1}, now)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	take(throttle(t, s, 2, 1, time.Minute))
	// One unit at 1/m is a minute of debt, which is a third of what 3 units at 1/m may owe.
	if d := take(throttle(t, s, 3, 1, time.Minute)); d.Granted != 1 || d.Remaining != 1 {
		t.Errorf("after one unit under another limit: %+v; want allowed with 1 remaining", d)
	}
	if d := take(throttle(t, s, 1, 1, time.Minute)); d.Granted >= 0 {
		t.Errorf("after two minutes of debt: %+v; want a denial", d)
	}
}

func TestThrottleRefusesNonsense(t *testing.T) {
	s := newSet()
	for _, c := range []struct {
		capacity, count int64
		period          time.Duration
		field           string
	}{
		{0, 1, time.Second, "burst"},
		{math.MinInt64, 1, time.Second, "burst"},
		{1, 0, time.Second, "count"},
		{1, 1, 0, "period"},
		{math.MaxInt64, 1, time.Hour, "burst"},
	} {
		var refused *weir.LimitError
		if _, err := s.Throttle(c.capacity, c.count, c.period); !errors.As(err, &refused) || refused.Field != c.field {
			t.Errorf("Throttle(%d, %d, %v): %v; want an error about %s", c.capacity, c.count, c.period, err, c.field)
		}
	}
}

func ExampleSet_Throttle() {
	set := limiters.New(memory.New(memory.Options{}))
	binding, err := set.Throttle(16, 30, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, _ := binding.Do(context.Background(), "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	d := v.Decision(16)
	fmt.Println(d.Allowed, d.Limit, d.Remaining)
	// Output: true 16 15
}
