package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

var limits = []string{
	"10/1s", "3/1s burst=5", "7/1s", "gcra 99999/1s", "leaky-bucket 4/1s burst=4", "leaky-queue 4/1s queue=3",
	"cooldown 3/1m", "min-interval 10/1s", "refill-bucket 5/10s burst=12", "fixed-window 5/10s", "quota-reset 5/10s",
	"sliding-log 4/10s", "sliding-window 9/10s", "sliding-buckets 8/10s cells=7", "hybrid 6/6s",
	"exponential 10/10s", "exponential 10/10s strict",
}

// Pitfall S2: of two creators one wins, and the other, which is denied, leaves the winner's life alone.
func TestS2RacingCreators(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	for _, text := range []string{"100/100s", "fixed-window 100/300000h", "quota-reset 100/100s", "sliding-log 100/100s"} {
		one, other := bind(t, open(t, url, o), text), bind(t, open(t, url, o), text)
		for i := range 20 {
			var granted atomic.Int64
			var wg sync.WaitGroup
			for _, b := range []store.Binding{one, other} {
				wg.Go(func() { granted.Add(take(t, b, fmt.Sprint(i), 100, store.OwnClock).Granted) })
			}
			wg.Wait()
			if granted.Load() != 99 { // 100, and −1 for the denial
				t.Errorf("%s, key %d: %d", text, i, granted.Load())
			}
		}
	}
	lives := `SELECT count(*) FROM ` + o.Table + ` WHERE expires > clock_timestamp() + interval '80 s'` // the machine may be slow
	if n := query[int](t, url, lives); n != 80 {
		t.Errorf("%d rows live for 80 s or more, want 80", n)
	}
}

// Pitfall S3, over pools of their own. From several processes it is a rule of storetest.
func TestS3Exactness(t *testing.T) {
	url := postgres.SharedServer(t).URL()
	o := trusted(t)
	stores := make([]*postgres.Store, 4)
	for i := range stores {
		stores[i] = open(t, url, o)
	}
	for _, text := range limits {
		want := min(200, algorithm.MustParseLimit(text).Capacity())
		var granted atomic.Int64
		var wg sync.WaitGroup
		for _, s := range stores {
			b := bind(t, s, text)
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
	s := open(t, postgres.SharedServer(t).URL(), trusted(t))
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

// Pitfall S8: what is given back is there for all, no more than was used, and the row's window and life stay.
func TestS8Refund(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	b := bind(t, open(t, url, o), "quota-reset 10/1h")
	first := take(t, b, "k", 5, store.OwnClock)
	for range 2 {
		v := do(t, b, "k", algorithm.Op{Kind: algorithm.Refund, Cost: 5}, store.OwnClock)
		if v.Remaining != 10 || v.Reset > first.Reset {
			t.Errorf("%+v: want 10 remaining, and the window of %+v", v, first)
		}
	}
	if v := take(t, bind(t, open(t, url, o), "quota-reset 10/1h"), "k", 10, store.OwnClock); v.Granted != 10 || v.Reset > first.Reset {
		t.Errorf("%+v", v)
	}
	if n := query[int](t, url, `SELECT count(*) FROM `+o.Table+` WHERE expires BETWEEN now() AND now() + interval '1 h'`); n != 1 {
		t.Errorf("%d rows expire within the hour, want 1", n)
	}
}

// Pitfall S11: a reset is of the literal key.
func TestS11GlobInKey(t *testing.T) {
	b := bind(t, open(t, postgres.SharedServer(t).URL(), trusted(t)), "10/1h")
	keys := []string{"*", "a?[b", "%", "_", "' OR true --", "axb", "a", ""}
	const resets = 5
	for _, key := range keys {
		take(t, b, key, 4, noon)
	}
	for _, key := range keys[:resets] {
		do(t, b, key, algorithm.Op{Kind: algorithm.Reset}, noon)
	}
	for i, key := range keys {
		want := int64(6)
		if i < resets {
			want = 10
		}
		if v := take(t, b, key, 0, noon); v.Remaining != want {
			t.Errorf("%q: %d remaining, want %d", key, v.Remaining, want)
		}
	}
}

// Pitfalls S12 and S13: keys that are no text for PostgreSQL, and names that might meet.
func TestS12OddKeys(t *testing.T) {
	s := open(t, postgres.SharedServer(t).URL(), trusted(t))
	keys := []string{
		"", " ", "a b", "\x00", "'; DROP TABLE weir_states; --", "\xff\xfe", "{", "}{", "#", "%", "jos\u00e9", "jose\u0301", "jose", "JOSE",
		strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20) + "y", "2001:db8::1/x", "a:b", "a|b",
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

// Pitfall S17: a life counts from the last debt.
func TestS17LifeIsOfTheDebt(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	b := bind(t, open(t, url, o), "gcra 1/100s burst=10")
	take(t, b, "k", 5, store.OwnClock)
	take(t, b, "k", 5, store.OwnClock)
	life := query[float64](t, url, `SELECT extract(epoch FROM expires - now())::float8 FROM `+o.Table)
	if life < 980 || life > 1000 {
		t.Errorf("the row lives for %v s, want nearly 1000", life)
	}
}

// Pitfall S19: peeks amid takes, from several stores, take nothing.
func TestS19PeekUnderContention(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	for _, text := range []string{"1000/1h", "sliding-log 1000/1h"} {
		var wg sync.WaitGroup
		for range 2 {
			b := bind(t, open(t, url, o), text)
			for i := range 40 {
				wg.Go(func() { take(t, b, "k", int64(i%2), noon) })
			}
		}
		wg.Wait()
		if v := take(t, bind(t, open(t, url, o), text), "k", 0, noon); v.Remaining != 960 {
			t.Errorf("%s: %d remaining after 40 takes, want 960", text, v.Remaining)
		}
	}
}

// Pitfall S27: a window that has passed is seen as full, without a take, and its row still there.
func TestS27StaleGet(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), trusted(t)
	s := open(t, url, o)
	for _, text := range limits {
		b := bind(t, s, text)
		capacity := algorithm.MustParseLimit(text).Capacity()
		v := take(t, b, "k", capacity, noon)
		if v := take(t, b, "k", 0, noon+int64(v.Reset)); v.Remaining != capacity || v.Reset != 0 {
			t.Errorf("%s: %+v when the key should be fresh", text, v)
		}
	}
	if n := query[int](t, url, `SELECT count(*) FROM `+o.Table); n != len(limits) {
		t.Errorf("%d rows, want %d", n, len(limits))
	}
}

// Pitfall A12: a window of half a second is over after half a second, and so is its row.
func TestA12SubSecondWindows(t *testing.T) {
	url := postgres.SharedServer(t).URL()
	s := open(t, url, trusted(t))
	for _, text := range []string{
		"2/500ms", "fixed-window 2/500ms", "quota-reset 2/500ms", "sliding-log 2/500ms", "refill-bucket 2/500ms", "sliding-window 2/500ms",
	} {
		b := bind(t, s, text)
		v := take(t, b, "k", 2, noon)
		if again := take(t, b, "k", 2, noon+int64(v.Reset)); v.Granted != 2 || v.Reset > time.Second || again.Granted != 2 {
			t.Errorf("%s: %+v, then %+v", text, v, again)
		}
	}
	o := mine(t)
	take(t, bind(t, open(t, url, o), "2/500ms"), "k", 2, store.OwnClock)
	within := `SELECT count(*) FROM ` + o.Table + ` WHERE expires <= clock_timestamp() + interval '500 ms'`
	if n := query[int](t, url, within); n != 1 {
		t.Errorf("%d rows expire within half a second, want 1", n)
	}
}

// As pitfall S22: 400 at a time, on one key and on as many, of one store and of four, all get an answer.
func TestS22FourHundredAtOnce(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	for _, pools := range []int{1, 4} {
		stores := make([]*postgres.Store, pools)
		for i := range stores {
			stores[i] = open(t, url, o)
		}
		for _, text := range []string{"100000/87600h", "sliding-log 100000/1000h"} {
			for _, keys := range []int{1, 400} {
				var wg sync.WaitGroup
				for _, s := range stores {
					b := bind(t, s, text)
					for i := range 400 {
						wg.Go(func() {
							if v := take(t, b, fmt.Sprint(pools, " ", keys, " ", i%keys), 1, store.OwnClock); v.Granted != 1 {
								t.Errorf("%+v", v)
							}
						})
					}
				}
				wg.Wait()
				used := int64(pools * 400 / keys)
				v := take(t, bind(t, stores[0], text), fmt.Sprint(pools, " ", keys, " 0"), 0, store.OwnClock)
				if capacity := algorithm.MustParseLimit(text).Capacity(); v.Remaining != capacity-used {
					t.Errorf("%s, %d stores, %d keys: %d were used, want %d", text, pools, keys, capacity-v.Remaining, used)
				}
			}
		}
	}
}
