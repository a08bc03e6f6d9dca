package memcached_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
)

var limits = []string{
	"10/1s", "3/1s burst=5", "7/1s", "gcra 99999/1s", "leaky-bucket 4/1s burst=4", "leaky-queue 4/1s queue=3",
	"cooldown 3/1m", "min-interval 10/1s", "refill-bucket 5/10s burst=12", "fixed-window 5/10s", "quota-reset 5/10s",
	"sliding-log 4/10s", "sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "hybrid 6/6s",
	"exponential 10/10s", "exponential 10/10s strict",
}

// skewAndTick is the time that an expiration adds to the life of a record, in seconds.
const skewAndTick = int64(memcached.DefaultClockSkew/time.Second) + 1

// Pitfall S2: of two creators one wins, and the other, which is denied, leaves the winner's expiration alone.
func TestS2RacingCreators(t *testing.T) {
	server := shared(t)
	o := mine(t)
	one, other := bind(t, open(t, server.URL(), o), "100/100s"), bind(t, open(t, server.URL(), o), "100/100s")
	wait := begin(t, server)
	for i := range 20 {
		key := fmt.Sprint(i)
		var granted atomic.Int64
		var wg sync.WaitGroup
		for _, b := range []store.Binding{one, other} {
			wg.Go(func() { granted.Add(take(t, b, key, 100, store.OwnClock).Granted) })
		}
		wg.Wait()
		if granted.Load() != 99 { // 100, and −1 for the denial
			t.Errorf("key %s: %d", key, granted.Load())
		}
	}
	for i := range 20 {
		wait.expires(t, recordName(o, fmt.Sprint(i), "100/100s"), 100+skewAndTick)
	}
}

// Pitfall S3, over connections of their own. From several processes it is a rule of storetest.
func TestS3Exactness(t *testing.T) {
	server := shared(t)
	for _, text := range limits {
		o := mine(t)
		want := min(200, algorithm.MustParseLimit(text).Capacity())
		var granted atomic.Int64
		var wg sync.WaitGroup
		o.TrustClientTime = true
		for range 4 {
			b := bind(t, open(t, server.URL(), o), text)
			for range 50 {
				wg.Go(func() { granted.Add(max(0, take(t, b, "k", 1, noon).Granted)) })
			}
		}
		wg.Wait()
		if granted.Load() != want {
			t.Errorf("%s: %d were admitted, want %d", text, granted.Load(), want)
		}
	}
}

// Pitfall S4: a denial is free.
func TestS4DenialIsFree(t *testing.T) {
	s := open(t, shared(t).URL(), trusted(t))
	for _, text := range []string{
		"10/1h", "gcra 10/1h", "leaky-bucket 10/1h", "leaky-queue 10/1h queue=9", "cooldown 10/1h", "refill-bucket 10/1h", "fixed-window 10/1h",
		"quota-reset 10/1h", "sliding-log 10/1h", "sliding-window 10/1h", "sliding-buckets 10/1h", "hybrid 10/1h", "exponential 10/1h",
	} {
		b := bind(t, s, text)
		for _, step := range []struct{ cost, granted, remaining int64 }{{8, 8, 2}, {5, -1, 2}, {11, -1, 2}, {2, 2, 0}} {
			if v := take(t, b, "k", step.cost, noon); v.Granted != step.granted || v.Remaining != step.remaining {
				t.Errorf("%s, %+v: %+v", text, step, v)
			}
		}
	}
}

// Pitfalls S7 and S1: whatever is done, every item has an expiration, and not a longer one than two windows and what clocks
// may differ by.
func TestS7EveryItemExpires(t *testing.T) {
	server := shared(t)
	o := mine(t)
	s := open(t, server.URL(), o)
	operations := [][]algorithm.Op{
		{{Cost: 1}}, {{Cost: 5}}, {{Kind: algorithm.TakeUpTo, Cost: 1 << 40}}, {{Cost: 2}, {Kind: algorithm.Refund, Cost: 1}},
		{{Cost: 3}, {Cost: 1 << 40}, {}}, {{Cost: 1}, {Kind: algorithm.Reset}, {Cost: 1}},
		{{Cost: 1}, {Kind: algorithm.Reset}}, {{Cost: 1}, {Kind: algorithm.Refund, Cost: 9}},
	}
	const reset, refunded = 6, 7
	for _, text := range append(limits, "sliding-buckets 50/20s", "100/1h", "fixed-window 10/960h") {
		limit := algorithm.MustParseLimit(text)
		b := bind(t, s, text)
		most := int64(2*limit.Period/time.Second)*max(1, limit.Capacity()/limit.Count+1) + skewAndTick + 1
		if limit.Algorithm == algorithm.Exponential {
			most = int64(60*limit.Period/time.Second) + skewAndTick // it fades
		}
		// it goes on when all is refunded
		window := strings.HasPrefix(text, "quota-reset") || strings.HasPrefix(text, "hybrid")
		for i, ops := range operations {
			for _, op := range ops {
				do(t, b, fmt.Sprint(i), op, store.OwnClock)
			}
			left, found := ttl(t, server, recordName(o, fmt.Sprint(i), text))
			switch {
			case i == reset && found:
				t.Errorf("%s: the item is there, and was reset", text)
			case i < reset && limit.Period >= time.Hour && !found:
				t.Errorf("%s: no item after the operations %+v", text, ops)
			case left < 0 || left > most:
				t.Errorf("%s: after the operations %+v the item expires in %d s, want up to %d", text, ops, left, most)
			case i == refunded && !window && left > skewAndTick+1:
				t.Errorf("%s: all was refunded, and the item expires in %d s; want no longer than clocks may differ", text, left)
			}
		}
	}
}

// Pitfall S8.
func TestS8Refund(t *testing.T) {
	b := bind(t, open(t, shared(t).URL(), trusted(t)), "10/1h")
	take(t, b, "k", 5, noon)
	for range 2 {
		if v := do(t, b, "k", algorithm.Op{Kind: algorithm.Refund, Cost: 5}, noon); v.Remaining != 10 {
			t.Errorf("%+v: want 10 remaining", v)
		}
	}
	if v := take(t, b, "k", 10, noon); v.Granted != 10 {
		t.Errorf("%+v", v)
	}
}

// Pitfall S11: a reset is of the literal key.
func TestS11GlobInKey(t *testing.T) {
	b := bind(t, open(t, shared(t).URL(), trusted(t)), "10/1h")
	keys := []string{"*", "a?[b", "axb", "a", ""}
	for _, key := range keys {
		take(t, b, key, 4, noon)
	}
	for _, reset := range []string{"*", "a?[b"} {
		do(t, b, reset, algorithm.Op{Kind: algorithm.Reset}, noon)
	}
	for i, key := range keys {
		want := int64(6)
		if i < 2 {
			want = 10
		}
		if v := take(t, b, key, 0, noon); v.Remaining != want {
			t.Errorf("%q: %d remaining, want %d", key, v.Remaining, want)
		}
	}
}

// Pitfalls S12 and S13: keys that memcached itself would refuse, and names that might meet.
func TestS12OddKeys(t *testing.T) {
	s := open(t, shared(t).URL(), trusted(t))
	keys := []string{
		"", " ", "a b", "\x00", "a\r\nflush_all\r\n", "\xff\xfe", "{", "}{", "#", "%", "jos\u00e9", "jose\u0301", "jose", strings.Repeat("x", 1<<20),
		strings.Repeat("x", 1<<20) + "y", "2001:db8::1/x", "a:b", "a|b",
	}
	for _, name := range []string{"", "n", "a:b", "a b\n"} {
		b, err := s.Bind(store.Spec{Name: name, Limit: algorithm.MustParseLimit("100/1h")})
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			if v := take(t, b, key, int64(i+1), noon); v.Remaining != 99-int64(i) {
				t.Errorf("%q, %.20q: %d remaining, want %d", name, key, v.Remaining, 99-i)
			}
		}
	}
}

// Pitfall S17: an expiration counts from the last debt.
func TestS17ExpirationIsOfTheDebt(t *testing.T) {
	server := shared(t)
	o := mine(t)
	b := bind(t, open(t, server.URL(), o), "gcra 1/100s burst=10")
	wait := begin(t, server)
	take(t, b, "k", 5, store.OwnClock)
	take(t, b, "k", 5, store.OwnClock)
	wait.expires(t, recordName(o, "k", "gcra 1/100s burst=10"), 1000+skewAndTick)
	later := bind(t, open(t, server.URL(), trusted(t)), "gcra 1/100s burst=10")
	take(t, later, "t", 10, noon)
	if v := take(t, later, "t", 1, noon+11*second); v.Granted != -1 {
		t.Errorf("%+v: admitted after 11 s", v)
	}
}

// Pitfall S19: peeks between swaps take nothing.
func TestS19PeekUnderContention(t *testing.T) {
	server := shared(t)
	var wg sync.WaitGroup
	o := trusted(t)
	var conflicts atomic.Int64
	for range 4 {
		s := open(t, server.URL(), o)
		b := bind(t, s, "100000/1000h")
		for i := range 4 {
			wg.Go(func() {
				for range 100 {
					take(t, b, "k", int64(i%2), noon)
				}
				conflicts.Add(s.Counts().Conflicts)
			})
		}
	}
	wg.Wait()
	if v := take(t, bind(t, open(t, server.URL(), o), "100000/1000h"), "k", 0, noon); v.Remaining != 100000-800 {
		t.Errorf("%d remaining, want %d", v.Remaining, 100000-800)
	}
	if conflicts.Load() == 0 {
		t.Error("no swap was lost: nothing was tested")
	}
}

// Pitfall S22: 400 at once on one key, and on as many keys, from four stores, end without an error.
func TestS22HotKey(t *testing.T) {
	server := shared(t)
	var wg sync.WaitGroup
	var granted atomic.Int64
	o := mine(t)
	for i := range 4 {
		b := bind(t, open(t, server.URL(), o), "1000/1000h")
		for j := range 400 {
			wg.Go(func() { granted.Add(max(0, take(t, b, "k", 1, store.OwnClock).Granted)) })
			wg.Go(func() { take(t, b, fmt.Sprint(i, j), 1, store.OwnClock) })
		}
	}
	wg.Wait()
	if granted.Load() != 1000 {
		t.Errorf("%d were admitted, want 1000", granted.Load())
	}
}

// Pitfall S27: after a window a key is full without a Take.
func TestS27StaleGet(t *testing.T) {
	s := open(t, shared(t).URL(), trusted(t))
	for _, text := range []string{"10/10s", "fixed-window 10/10s", "quota-reset 10/10s", "sliding-log 10/10s", "refill-bucket 10/10s", "hybrid 10/5s"} {
		b := bind(t, s, text)
		take(t, b, "k", 10, noon)
		if v := take(t, b, "k", 0, noon+10*second); v.Remaining != 10 || v.Reset != 0 {
			t.Errorf("%s: %+v a window later", text, v)
		}
	}
}

// Pitfall A12: windows of less than a second, though memcached counts whole ones.
func TestA12SubSecondWindows(t *testing.T) {
	server := shared(t)
	o := mine(t)
	for _, text := range []string{"quota-reset 3/500ms", "fixed-window 3/500ms", "3/500ms", "sliding-log 3/500ms"} {
		b := bind(t, open(t, server.URL(), o), text)
		asked := time.Now().Truncate(time.Microsecond)
		v := take(t, b, "k", 3, store.OwnClock)
		usable := asked.Add(v.Reset)
		// Half a second really passes: memcached drops items by its own clock only. The key is
		// asked until it grants, and too early is the failure.
		for v = take(t, b, "k", 3, store.OwnClock); v.Granted != 3; v = take(t, b, "k", 3, store.OwnClock) {
			time.Sleep(time.Millisecond)
		}
		if early := time.Until(usable); early > 0 {
			t.Errorf("%s: %+v, %v before the time that the reset gave", text, v, early)
		}
		if left, _ := ttl(t, server, recordName(o, "k", text)); left < 0 || left > 1+skewAndTick {
			t.Errorf("%s: the item expires in %d s, want up to %d", text, left, 1+skewAndTick)
		}
	}
}

func TestStatesAreReadable(t *testing.T) {
	server := shared(t)
	o := trusted(t)
	s := open(t, server.URL(), o)
	for text, want := range map[string]string{"10/1m": "1700000006000000", "7/1s": "1700000000142857:1", "fixed-window 5/10s": "170000000:1"} {
		take(t, bind(t, s, text), "user:42", 1, noon)
		if got := value(t, server, recordName(o, "user:42", text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestBindRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		args []string
		most int64
	}{{nil, 52_377}, {[]string{"-I", "512k"}, 26_163}} {
		server := shared(t)
		if c.args != nil {
			server = started(t, c.args...)
		}
		s := open(t, server.URL(), trusted(t))
		var refused *algorithm.LimitError
		_, err := s.Bind(store.Spec{Limit: algorithm.Limit{Algorithm: algorithm.SlidingLog, Count: c.most + 1, Period: time.Hour}})
		if !errors.As(err, &refused) || refused.Field != "count" || !strings.Contains(refused.Accept, fmt.Sprintf("1 to %d ", c.most)) {
			t.Errorf("%v: %v", c.args, err)
		}
		// What is accepted fits: each unit at a time of its own, as far from 1970 as there are digits for.
		b, err := s.Bind(store.Spec{Limit: algorithm.Limit{Algorithm: algorithm.SlidingLog, Count: c.most, Period: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		const early = -2_000_000_000 * second
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for i := range 40 {
					take(t, b, "k", 1, early+int64(i)*1000)
				}
			})
		}
		wg.Wait()
		if v := take(t, b, "k", c.most, early+100_000); v.Granted != -1 || v.Remaining != c.most-640 {
			t.Errorf("%+v", v)
		}
	}
}
