package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// named returns bindings of one name, of several limits.
func named(t testing.TB, s *redis.Store, name string, texts ...string) []store.Binding {
	t.Helper()
	bindings := make([]store.Binding, len(texts))
	for i, text := range texts {
		b, err := s.Bind(store.Spec{Name: name, Limit: algorithm.MustParseLimit(text)})
		if err != nil {
			t.Fatal(err)
		}
		bindings[i] = b
	}
	return bindings
}

// once returns a name that no test has used on the server.
func once(t testing.TB) string { return t.Name() + strconv.FormatInt(time.Now().UnixNano(), 36) }

// change makes the walk's operations those of another limit of its name.
func (w *walk) change(b store.Binding) {
	w.binding, w.program = b, b.(store.Inspector).Program()
	w.limit = w.program.Limit()
}

// accountOp is an operation that an account may have.
func (w *walk) accountOp() algorithm.Op {
	id := w.Int64N(6)
	cost := w.Int64N(min(8, w.limit.Capacity()+1))
	switch w.IntN(8) {
	case 0, 1:
		return algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: cost, Life: 1 + w.Int64N(2*int64(w.limit.Period/time.Microsecond))}
	case 2, 3:
		return algorithm.Op{Kind: algorithm.Commit, ID: id, Cost: cost}
	}
	return w.op()
}

// A key whose limit changes, and on which units are reserved, is what algorithm.Account is after the same operations: in every verdict, and in what is
// kept, head and state.
func TestAccountIsWhatTheProgramDoes(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true, Timeout: patience})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	steps := 1500
	if testing.Short() {
		steps = 200
	}
	for i, text := range limits {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			name := once(t)
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			// With limits of any kind, and with one of its kind that has another count.
			all := named(t, s, name, text, limits[random.IntN(len(limits))], limits[random.IntN(len(limits))])
			sibling := algorithm.MustParseLimit(text)
			sibling.Count += sibling.Count/2 + 1
			if b, err := s.Bind(store.Spec{Name: name, Limit: sibling}); err == nil {
				all = append(all, b)
			}
			w := &walk{Rand: random, store: s, now: 1_700_000_000_000_000 + random.Int64N(1e9)}
			w.change(all[0])
			for i := range steps {
				if w.IntN(4) == 0 {
					w.change(all[w.IntN(len(all))])
				}
				w.step()
				if err := w.follow(t.Context(), "key", w.accountOp()); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if err := w.kept(t.Context(), "key"); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
		})
	}
}

// Pitfall S18: used 10 of 10, raised to 20, lowered to 10, raised to 20: at most 10 more at once, in all. Each limit is one of another store, as
// while a change spreads.
func TestS18LimitChange(t *testing.T) {
	for _, pair := range [][2]string{
		{"10/1000h", "20/1000h"}, {"fixed-window 10/10000h", "fixed-window 20/10000h"}, {"sliding-log 10/1000h", "sliding-log 20/1000h"},
		{"sliding-buckets 10/1000h", "sliding-buckets 20/1000h"}, {"concurrent 10 lease=1000h", "concurrent 20 lease=1000h"},
		{"10/1000h", "sliding-log 20/1000h"}, {"sliding-window 10/10000h", "quota-reset 20/1000h"}, {"hybrid 10/1000h", "7/1h burst=20"},
	} {
		name := once(t)
		low := named(t, open(t, redis.Options{}), name, pair[0])[0]
		high := named(t, open(t, redis.Options{}), name, pair[1])[0]
		if v := take(t, low, "key", 10); v.Granted != 10 || v.Remaining != 0 {
			t.Errorf("%q: %+v", pair, v)
		}
		if v := take(t, high, "key", 0); v.Remaining != 10 {
			t.Errorf("%q: a peek after the raise: %+v", pair, v)
		}
		if v := take(t, high, "key", 6); v.Granted != 6 || v.Remaining != 4 {
			t.Errorf("%q: raised: %+v", pair, v)
		}
		for range 3 {
			if v := take(t, low, "key", 1); v.Granted != -1 || v.Remaining != 0 {
				t.Errorf("%q: lowered: %+v", pair, v)
			}
			if v := take(t, high, "key", 0); v.Remaining > 4 {
				t.Errorf("%q: raised again: %+v", pair, v)
			}
		}
		if v := take(t, high, "key", 5); v.Granted != -1 {
			t.Errorf("%q: a change gave %+v", pair, v)
		}
	}
}

// Several stores with two limits of one name, at once: never more than the larger capacity in all, and they come to an end.
func TestTwoLimitsOfOneNameAtOnce(t *testing.T) {
	var stores []*redis.Store
	for range 3 {
		stores = append(stores, open(t, redis.Options{}))
	}
	for _, pair := range [][2]string{
		{"30/1000h", "50/1000h"}, {"sliding-log 30/1000h", "50/1000h"}, {"sliding-log 30/1000h", "concurrent 50 lease=1000h"},
		{"calendar", "quota-reset 50/1000h"}, {"sliding-buckets 30/1000h", "sliding-buckets 50/1000h cells=7"}, {"fixed-window 30/10000h", "fixed-window 50/10000h"},
	} {
		if pair[0] == "calendar" { // one that does not begin anew while the test runs
			pair[0] = fmt.Sprintf("30/year anchor=%s", time.Now().AddDate(0, -6, 0).Format("01-02"))
		}
		name := once(t)
		var granted, reserved, settled atomic.Int64
		var wg sync.WaitGroup
		for n, s := range stores {
			bindings := named(t, s, name, pair[0], pair[1])
			for g := range 4 {
				wg.Go(func() {
					for try := range 10 {
						if g == 3 {
							id := int64(1000*n + try + 1)
							v := do(t, bindings[try%2], "key", algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: 2, Life: int64(time.Hour)})
							if v.Granted == 2 && try%3 == 0 {
								do(t, bindings[n%2], "key", algorithm.Op{Kind: algorithm.Commit, ID: id, Cost: 1})
								granted.Add(1)
								settled.Add(1)
							} else {
								reserved.Add(max(0, v.Granted))
							}
							continue
						}
						v := take(t, bindings[(try+n+g)%2], "key", 1)
						granted.Add(max(0, v.Granted))
					}
				})
			}
		}
		wg.Wait()
		b := named(t, stores[0], name, pair[1])[0]
		left := take(t, b, "key", 0).Remaining
		// What a log was given by another limit it can't tell from other units, and does not give back.
		if used := granted.Load() + reserved.Load(); used+left > 50 || used+left < 50-settled.Load() {
			t.Errorf("%q: %d granted and %d reserved at once, %d settled, %d left", pair, granted.Load(), reserved.Load(), settled.Load(), left)
		}
	}
	if stores[0].Counts().Conflicts+stores[1].Counts().Conflicts+stores[2].Counts().Conflicts == 0 {
		t.Log("no swap was lost")
	}
}

// A reservation is settled once, whoever tries: of several stores that race for it one succeeds.
func TestOneCommitSucceeds(t *testing.T) {
	var bindings []store.Binding
	name := once(t)
	for range 3 {
		bindings = append(bindings, named(t, open(t, redis.Options{}), name, "100/1000h")...)
	}
	for id := int64(1); id <= 20; id++ {
		do(t, bindings[0], "key", algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: 5, Life: int64(time.Hour)})
		var settled atomic.Int64
		var wg sync.WaitGroup
		for g := range 12 {
			wg.Go(func() {
				if v := do(t, bindings[g%3], "key", algorithm.Op{Kind: algorithm.Commit, ID: id, Cost: 2}); v.Granted == 2 {
					settled.Add(1)
				}
			})
		}
		wg.Wait()
		if settled.Load() != 1 {
			t.Fatalf("%d of 12 settled a reservation", settled.Load())
		}
	}
	if v := take(t, bindings[1], "key", 0); v.Remaining != 60 {
		t.Errorf("%+v", v)
	}
}

// Many at once on a key that the script leaves alone share their swaps, and each has its own answer.
func TestManyOnOneAccount(t *testing.T) {
	s := open(t, redis.Options{})
	b := named(t, s, once(t), "300/1000h")[0]
	c := raw(t, server(t).Addr())
	before := calls(t, c, "evalsha")
	var granted atomic.Int64
	var wg sync.WaitGroup
	for id := range int64(400) {
		wg.Go(func() {
			v := do(t, b, "key", algorithm.Op{Kind: algorithm.Reserve, ID: id + 1, Cost: 1, Life: int64(time.Hour)})
			granted.Add(max(0, v.Granted))
		})
	}
	wg.Wait()
	if granted.Load() != 300 {
		t.Errorf("%d of 300 are reserved", granted.Load())
	}
	if n := calls(t, c, "evalsha") - before; n > 200 { // as a rule fewer than ten
		t.Errorf("%d calls for 400 reservations", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Do(ended, "key", algorithm.Op{Kind: algorithm.Commit, ID: 1}, store.OwnClock); err == nil || !strings.Contains(err.Error(), store.ErrNothingDone.Error()) {
		t.Error(err)
	}
}

// Pitfalls S5 and S6, with names: what several limits decide together is charged in all or none, in one call of the script, also if units are reserved or the
// limits have changed; and callers that have the keys in opposite orders get on.
func TestS5S6TogetherUnderNames(t *testing.T) {
	s, other := open(t, redis.Options{}), open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	name := once(t)
	second, minute := part(t, s, name, "10/1000h", "key", 1), part(t, s, name, "15/1000h", "key", 1)
	second.Name, minute.Name = "second", "minute"
	take(t, second.Binding, "key", 0)
	for i := range 110 {
		before := calls(t, c, "evalsha")
		verdicts := takeAll(t, s, second, minute)
		if n := calls(t, c, "evalsha") - before; n != 1 {
			t.Fatalf("request %d makes %d calls, want 1", i, n)
		}
		if i == 9 {
			do(t, second.Binding, "key", algorithm.Op{Kind: algorithm.Reset})
		}
		if i >= 15 && (verdicts[0].Remaining != 5 || verdicts[1].Granted != -1) {
			t.Fatalf("request %d: %+v", i, verdicts)
		}
	}

	// Of an account that is more than a state it takes two calls, and is one step.
	minute.ID, minute.Life = 7, int64(time.Hour)
	do(t, minute.Binding, "key", algorithm.Op{Kind: algorithm.Refund, Cost: 3})
	before := calls(t, c, "evalsha")
	if v := takeAll(t, s, second, minute); v[0].Granted != 1 || v[1].Granted != 1 || v[1].Remaining != 2 || v[0].At != v[1].At {
		t.Errorf("%+v", v)
	}
	if n := calls(t, c, "evalsha") - before; n != 2 {
		t.Errorf("a reservation with others makes %d calls, want 2", n)
	}

	var wg sync.WaitGroup
	var granted atomic.Int64
	for g, s := range []*redis.Store{s, other, s, other} {
		text := []string{"40/1000h", "60/1000h"}[g%2]
		var parts []store.Part
		for _, key := range []string{"x", "y"} {
			b := named(t, s, name+"joint", text)[0]
			parts = append(parts, store.Part{Store: s, Binding: b, Limit: algorithm.MustParseLimit(text), Name: t.Name() + "joint", Key: key, Cost: 1})
		}
		if g >= 2 {
			slices.Reverse(parts)
		}
		wg.Go(func() {
			for range 50 {
				if v := takeAll(t, s, parts...); v[0].Granted == 1 && v[1].Granted == 1 {
					granted.Add(1)
				} else if v[0].Granted == 1 || v[1].Granted == 1 {
					t.Errorf("a half: %+v", v)
				}
			}
		})
	}
	wg.Wait()
	b := named(t, s, name+"joint", "60/1000h")[0]
	x, y := take(t, b, "x", 0), take(t, b, "y", 0)
	if n := granted.Load(); n > 60 || n < 40 || x.Remaining != 60-n || y.Remaining != 60-n {
		t.Errorf("%d pass, and %d and %d are left of 60", n, x.Remaining, y.Remaining)
	}
}

// Pitfall S7, with accounts: each lives until it is as a fresh one, which a reservation puts off.
func TestS7LifeOfAccounts(t *testing.T) {
	prefix := "s7-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	s := openURL(t, server(t).URL(), redis.Options{Prefix: prefix})
	c := raw(t, server(t).Addr())
	for _, pair := range [][2]string{
		{"10/1h", "sliding-log 10/1h"}, {"sliding-log 10/1h", "10/1h"}, {"sliding-buckets 10/1h", "concurrent 10 lease=1h"},
		{"concurrent 10 lease=1h", "fixed-window 10/1h"}, {"hybrid 10/1h", "exponential 10/1h"},
	} {
		b := named(t, s, pair[0], pair[:]...)
		began := time.Now()
		life := func(what string, least, most time.Duration) {
			t.Helper()
			for _, ms := range census(t, c, prefix+":*}:"+strings.ReplaceAll(pair[0], " ", "%20")) {
				if got := time.Duration(ms) * time.Millisecond; got < least-time.Since(began)-time.Second || got > most+time.Second {
					t.Errorf("%q, %s: it lives for %v, want %v to %v", pair, what, got, least, most)
				}
			}
		}
		first := take(t, b[0], "key", 10).Reset
		v := take(t, b[1], "key", 1)
		life("changed", v.Reset, max(v.Reset, first))
		do(t, b[1], "key", algorithm.Op{Kind: algorithm.Refund, Cost: 1})
		v = do(t, b[1], "key", algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: int64(5 * time.Hour)})
		if v.Granted != 1 && !strings.HasPrefix(pair[1], "exponential") {
			t.Errorf("%q: %+v", pair, v)
		}
		if v.Granted == 1 {
			life("reserved", 5*time.Hour, 5*time.Hour)
		}
		do(t, b[1], "key", algorithm.Op{Kind: algorithm.Commit, ID: 1})
		v = take(t, b[1], "key", 0)
		life("settled", v.Reset, max(v.Reset, first, 3*time.Hour))
		do(t, b[0], "key", algorithm.Op{Kind: algorithm.Refund, Cost: 10})
		life("given back", 0, max(v.Reset, first))
	}
	if n := calls(t, c, "set"); n == 0 {
		t.Error("nothing was written")
	}
}

// What is no head, or no state of the head's limit, is an error until a reset, and stays as it is.
func TestForeignHeads(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, text := range []string{"100/1h", "7/1s burst=3", "sliding-log 10/1h", "fixed-window 10/1h", "10/month", "concurrent 10 lease=1h", "hybrid 10/1h", "exponential 10/1h"} {
		b, name := bind(t, s, t.Name(), text), nameOf(t, t.Name(), text, "key")
		for _, value := range []string{
			"SET~|", "SET~|1", "SET~x|1", "SET~" + text + "|", "SET~" + text + "|x", "SET~" + text + ";|1:1", "SET~" + text + ";over=1|1:1", "SET~" + text + ";hold=1|1:1",
			"SET~99/1h|x", "SET~99/1h|1:2:3", "SET~sliding-log 99/1h|1", "SET~sliding-log 99/1h|2:1:1:1", "SET~sliding-buckets 9/1h|1:1", "SET~fixed-window 10/1h|1:99",
			"SET~100/1h;hold=" + strings.Repeat("9", 300<<10) + "|1", "RPUSH~" + text + "|0:0", "RPUSH~" + text + "|0:0~x", "RPUSH~99/1h|0:0~1:1",
			"RPUSH~sliding-log 9/1h|0:0", "RPUSH~sliding-log 9/1h|0:0~x", "RPUSH~sliding-log 9/1h|0:0~1:99", "RPUSH~sliding-buckets 9/1h|0:0~99999999999999999:1", "RPUSH~\n~\n",
			"HSET~a~b", "SET~exponential 9/1h|1:nan", "SET~1/year tz=Nowhere|1:1",
		} {
			words := strings.Split(value, "~")
			ask(t, c, append([]string{words[0], name}, words[1:]...)...)
			dump, _ := ask(t, c, "DUMP", name).ToString()
			for _, op := range append(slices.Clone(foreignOps), algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: 1000}, algorithm.Op{Kind: algorithm.Commit, ID: 1}) {
				_, err := b.Do(t.Context(), "key", op, store.OwnClock)
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) || !strings.Contains(err.Error(), store.ErrNothingDone.Error()) {
					t.Errorf("%s, %.60q, %+v: %.200v", text, value, op, err)
				}
			}
			if _, _, err := b.(store.Inspector).Inspect(t.Context(), "key", store.OwnClock); err == nil {
				t.Errorf("%s, %.60q: it is inspected", text, value)
			}
			if now, _ := ask(t, c, "DUMP", name).ToString(); now != dump {
				t.Errorf("%s, %.60q: it was written over", text, value)
			}
			do(t, b, "key", algorithm.Op{Kind: algorithm.Reset})
			if v := take(t, b, "key", 1); v.Granted != 1 {
				t.Errorf("%s, %.60q: after a reset %+v", text, value, v)
			}
			ask(t, c, "DEL", name)
		}
	}
}

// Neither a denial after a change nor a peek writes.
func TestDeniedAfterAChange(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	b := named(t, s, once(t), "10/1000h", "sliding-log 5/1000h")
	take(t, b[0], "key", 10)
	before := calls(t, c, "rpush") + calls(t, c, "set")
	for _, cost := range []int64{0, 1, 1, 0, 9} {
		v := take(t, b[1], "key", cost)
		if n := calls(t, c, "rpush") + calls(t, c, "set") - before; n > 0 || cost > 0 && v.Granted != -1 {
			t.Errorf("cost %d: %d writes, want none; %+v", cost, n, v)
		}
	}
}

// A long log changes hands whole, to and fro, and the script that does it is sent again when the server has forgotten it.
func TestLongLogChangesHands(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{TrustClientTime: true})
	c := raw(t, server.Addr())
	b := named(t, s, t.Name(), "sliding-log 5000/1h", "concurrent 4000 lease=1h", "100/1h")
	w := &walk{Rand: rand.New(rand.NewPCG(1, 2)), store: s, now: 1_700_000_000_000_000}
	w.change(b[0])
	for range 3500 {
		w.now += 1000
		if err := w.follow(t.Context(), "key", algorithm.Op{Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i, to := range []int{1, 0, 0, 2, 0, 1, 2} {
		w.change(b[to])
		w.now += 10
		ask(t, c, "SCRIPT", "FLUSH")
		op := algorithm.Op{Cost: 1}
		if i == 2 {
			op = algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 3, Life: 1_000_000}
		}
		if err := w.follow(t.Context(), "key", op); err != nil {
			t.Fatal(err)
		}
		if err := w.kept(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
	}
}

// The script that is told the windows of other times asks for those that it needs, also where a state is of one that is far ahead.
func TestWindowsOfACalendar(t *testing.T) {
	s, own := open(t, redis.Options{TrustClientTime: true}), open(t, redis.Options{})
	for _, text := range []string{"10/day", "10/month tz=Europe/Berlin", "10/year"} {
		for name, limiter := range map[string]string{"named": once(t), "unnamed": ""} {
			limit := algorithm.MustParseLimit(text)
			bindings := make([]store.Binding, 2)
			for i, s := range []*redis.Store{s, own} {
				b, err := s.Bind(store.Spec{Name: limiter, Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				bindings[i] = b
			}
			key := once(t)
			redis.Misled(bindings[0], 2, -1_000_000_000_000_000)
			later := time.Date(2050, 3, 3, 3, 3, 3, 0, time.UTC).UnixNano()
			if v, err := bindings[0].Do(t.Context(), key, algorithm.Op{Cost: 4}, later); err != nil || v.Remaining != 6 {
				t.Errorf("%s, %s: %+v, %v", text, name, v, err)
			}
			if v, err := bindings[0].Do(t.Context(), key, algorithm.Op{Cost: 3}, 0); err != nil || v.Remaining != 3 {
				t.Errorf("%s, %s: a time before is charged to the window: %+v, %v", text, name, v, err)
			}
			healed := own.Counts().Healed
			redis.Misled(bindings[1], 1, 1_000_000_000_000_000)
			if v := take(t, bindings[1], key, 1); v.Granted != -1 || own.Counts().Healed != healed+1 || v.Reset > 366*24*time.Hour {
				t.Errorf("%s, %s: a state that is far ahead is full debt: %+v", text, name, v)
			}
		}
	}
}

// Reservations are for bindings with a name.
func TestReservationsNeedAName(t *testing.T) {
	s := open(t, redis.Options{})
	debt, err := s.Bind(store.Spec{Name: t.Name(), Limit: algorithm.MustParseLimit("1/1h"), TimeDebt: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []store.Binding{bind(t, s, "", "1/1h"), debt} {
		for _, op := range []algorithm.Op{{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: 1}, {Kind: algorithm.Commit, ID: 1}} {
			if _, err := b.Do(t.Context(), t.Name(), op, store.OwnClock); !errors.Is(err, store.ErrUnnamed) {
				t.Error(err)
			}
		}
		parts := []store.Part{{Store: s, Binding: b, Limit: algorithm.MustParseLimit("1/1h"), Key: t.Name(), Cost: 1, ID: 1, Life: 1000}}
		if _, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil); !errors.Is(err, store.ErrUnnamed) {
			t.Error(err)
		}
	}
}

// Many requests at once that several limits decide, with reservations on keys that all of them share, or some, all pass.
func TestManyTogetherOnSharedAccounts(t *testing.T) {
	s := open(t, redis.Options{})
	name := once(t)
	client, global := named(t, s, name, "1000/1000h")[0], named(t, s, name+"all", "1000/1000h")[0]
	limit := algorithm.MustParseLimit("1000/1000h")
	for _, clients := range []int{1, 50} {
		var wg sync.WaitGroup
		var granted atomic.Int64
		for id := range 400 {
			wg.Go(func() {
				parts := []store.Part{
					{Store: s, Binding: client, Limit: limit, Name: name, Key: fmt.Sprint("client", id%clients), Cost: 1, ID: int64(id + 1 + clients*1000), Life: int64(time.Hour)},
					{Store: s, Binding: global, Limit: limit, Name: name + "all", Key: "global", Cost: 1, ID: int64(id + 1 + clients*1000), Life: int64(time.Hour)},
				}
				outcomes, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil)
				if err != nil {
					t.Error(err)
				} else if outcomes[0].Granted == 1 && outcomes[1].Granted == 1 {
					granted.Add(1)
				}
			})
		}
		wg.Wait()
		if granted.Load() != 400 {
			t.Errorf("%d of 400 pass, of %d clients", granted.Load(), clients)
		}
	}
	t.Logf("%+v", s.Counts())
}
