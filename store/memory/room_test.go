package memory_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const maxBytes = 4 << 20

// few returns the first number, or the second with -short.
func few[N int | int64](all, short N) N {
	if testing.Short() {
		return short
	}
	return all
}

// checkHeap compares the growth of the heap since before with the store's bound, and with the
// store's count.
func checkHeap(t *testing.T, s *memory.Store, before int64) {
	t.Helper()
	grown, got := heap()-before, s.Stats()
	t.Logf("%d keys: the heap has grown by %d bytes, %d are counted", got.Keys, grown, got.Bytes)
	if got.Bytes > got.MaxBytes {
		t.Errorf("%d bytes are counted, of at most %d", got.Bytes, got.MaxBytes)
	}
	if grown > got.MaxBytes*12/10 {
		t.Errorf("the heap has grown by %d bytes, under a bound of %d", grown, got.MaxBytes)
	}
	if got.Bytes*12 < grown*10 || got.Bytes*10 > grown*13 {
		t.Errorf("%d bytes are counted, and the heap has grown by %d", got.Bytes, grown)
	}
	runtime.KeepAlive(s)
}

// TestFloodStaysWithinMaxBytes: keys without end under any limit, with a name or without, take no
// more memory than MaxBytes.
func TestFloodStaysWithinMaxBytes(t *testing.T) {
	texts := append([]string{"sliding-buckets 10/1h cells=3600", "100/month", "concurrent 3 lease=1h"}, limits...)
	for n, name := range []string{"", "name"} {
		for i, text := range texts {
			if testing.Short() && i%2 != n {
				continue // each limit once, with a name or without
			}
			t.Run(fmt.Sprintf("%q %s", name, text), func(t *testing.T) {
				before := heap()
				s := memory.New(memory.Options{MaxBytes: few[int64](maxBytes, maxBytes/2)})
				b, err := s.Bind(store.Spec{Name: name, Limit: algorithm.MustParseLimit(text)})
				if err != nil {
					t.Fatal(err)
				}
				for i := 0; s.Stats().Overflowed < 1000; i++ {
					do(t, b, fmt.Sprint(i), algorithm.Op{Cost: 1}, 0)
				}
				checkHeap(t, s, before)
			})
		}
	}
}

// TestLimitsTakeMemoryToo: keys, each with a limit of its own under one name, stay within MaxBytes
// with their limits.
func TestLimitsTakeMemoryToo(t *testing.T) {
	before := heap()
	s := memory.New(memory.Options{MaxBytes: maxBytes})
	for i := 0; s.Stats().Overflowed < 10; i++ {
		do(t, bindNamed(t, s, "name", fmt.Sprintf("%d/1h", i+1)).binding, fmt.Sprint(i), algorithm.Op{Cost: 1}, 0)
	}
	checkHeap(t, s, before)
}

// TestGrowthStaysWithinMaxBytes: a few keys whose records grow without end are denied, and stay
// unchanged.
func TestGrowthStaysWithinMaxBytes(t *testing.T) {
	keys := few(150, 120)
	take := algorithm.Op{Cost: 1}
	grow := map[string]func(round int) (limit string, op algorithm.Op){
		"limit changes": func(round int) (string, algorithm.Op) {
			return fmt.Sprintf("sliding-buckets 1000/1h cells=%d", 100<<(round%6)+round%4), take
		},
		"log": func(int) (string, algorithm.Op) { return "sliding-log 100000/1h", take },
		"reservations": func(round int) (string, algorithm.Op) {
			return "100000/1h", algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: int64(round + 1), Life: 3600 * second}
		},
	}
	for what, step := range grow {
		t.Run(what, func(t *testing.T) {
			before := heap()
			s := memory.New(memory.Options{MaxBytes: int64(keys) * maxBytes / 300})
			denied := 0
			for round := 0; denied < keys; round++ {
				limit, op := step(round)
				b := bindNamed(t, s, "name", limit).binding
				for i := range keys {
					if do(t, b, fmt.Sprint(i), op, int64(round)).Granted < 0 {
						denied++
					}
				}
			}
			if got := s.Stats(); got.Refused+got.Overflowed != int64(denied) || got.Refused == 0 {
				t.Errorf("%+v, of %d that were denied", got, denied)
			}
			checkHeap(t, s, before)
		})
	}
}

// TestRecordThatCannotGrow: it is denied without a change, settles its holdings, and goes on when
// there is memory again.
func TestRecordThatCannotGrow(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: memory.MinMaxBytes})
	b := bindNamed(t, s, "a", "10/1h").binding
	if v := do(t, b, "k", algorithm.Op{Kind: algorithm.Reserve, Cost: 4, ID: 7, Life: 7200 * second}, 0); v.Granted != 4 {
		t.Fatalf("reserved: %+v", v)
	}
	// until nearly all is used
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		flood := bindNamed(t, s, name, "sliding-log 9/2h").binding
		for i := 0; take1(t, flood, fmt.Sprint(i), 0); {
			i++
		}
	}
	large := bindNamed(t, s, "a", "sliding-buckets 20/1h cells=3600").binding
	for range 3 {
		v := do(t, large, "k", algorithm.Op{Cost: 1}, 0)
		if v.Granted != -1 || v.Wait <= 0 || v.Wait > 2*time.Hour {
			t.Fatalf("a limit of a record of 29 kB: %+v", v)
		}
	}
	if v := do(t, b, "k", algorithm.Op{}, 0); v.Remaining != 6 {
		t.Errorf("after denials: %+v", v)
	}
	if got := s.Stats().Refused; got != 3 {
		t.Errorf("%d refused, want 3", got)
	}
	if v := do(t, large, "k", algorithm.Op{Kind: algorithm.Commit, Cost: 9, ID: 7}, 0); v.Granted != 9 {
		t.Errorf("settled: %+v", v)
	}
	if v := do(t, b, "k", algorithm.Op{}, 0); v.Remaining != 1 {
		t.Errorf("after 9 of 10: %+v", v)
	}
	if v := do(t, large, "k", algorithm.Op{Cost: 1}, 7200*second); v.Granted != 1 {
		t.Errorf("when the others can be evicted: %+v", v)
	}
}

// TestFloodLeavesRoomForOthers: under a flood on one or several names, new keys under further names
// are admitted.
func TestFloodLeavesRoomForOthers(t *testing.T) {
	for _, text := range []string{"1/24h", "sliding-window 1/24h"} {
		for _, options := range []memory.Options{{MaxBytes: maxBytes}, {MaxKeys: 100_000}} {
			for floods := 1; floods <= 2; floods++ { // each takes four fifths of the rest
				if testing.Short() && floods == 1 {
					continue // two are harder
				}
				t.Run(fmt.Sprintf("%s %+v %d", text, options, floods), func(t *testing.T) {
					s := memory.New(options)
					for f := range floods {
						b := bindNamed(t, s, fmt.Sprint("flood", f), text).binding
						if text == "1/24h" {
							b = bind(t, s, fmt.Sprintf("1/%dh", f+1))
						}
						for i := 0; s.Stats().Overflowed < int64(100*(f+1)); i++ {
							take1(t, b, fmt.Sprint(i), 0)
						}
					}
					for _, b := range []store.Binding{bind(t, s, "5/1s"), bindNamed(t, s, "other", "5/1m").binding} {
						for i := range 150 {
							if v := do(t, b, fmt.Sprint(i), algorithm.Op{Cost: 1}, 0); v.Granted != 1 {
								t.Fatalf("key %d under another name: %+v, %+v", i, v, s.Stats())
							}
						}
					}
				})
			}
		}
	}
}

// TestRetryAfterFollowsTheLimit: a new key of a full store waits no longer than an exhausted key of
// its limit.
func TestRetryAfterFollowsTheLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5/1s": 200 * time.Millisecond, "1/24h": time.Hour, "fixed-window 5/10s": 10 * time.Second, "quota-reset 5/10s": 10 * time.Second,
		"sliding-log 4/10s": 10 * time.Second, "100000/1s": time.Millisecond,
	} {
		for _, name := range []string{"", "name"} {
			t.Run(fmt.Sprintf("%q %s", name, text), func(t *testing.T) {
				s := memory.New(memory.Options{MaxKeys: 1})
				take1(t, bind(t, s, "1/1h"), "held", 0)
				b := bindNamed(t, s, name, text).binding
				if v := do(t, b, "new", algorithm.Op{Cost: 1}, 0); v.Granted != -1 || v.Wait != want {
					t.Errorf("%+v, want a denial for %v", v, want)
				}
			})
		}
	}
}

// TestMemoryIsUsedAgain: the memory of evicted keys goes to keys of different kinds.
func TestMemoryIsUsedAgain(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: maxBytes})
	fill := func(name, text string, now int64) (keys int) {
		b := bindNamed(t, s, name, text).binding
		for refused := 0; refused < 100; {
			if take1(t, b, fmt.Sprint(now, keys, refused), now) {
				keys++
			} else {
				refused++
			}
		}
		return keys
	}
	first := map[string]int{}
	now := int64(0)
	for range few(3, 2) {
		for _, text := range []string{"10/1s", "3/1s burst=5", "fixed-window 10/1s"} {
			now += 60 * second
			n := fill("", text, now)
			if first[text] == 0 {
				first[text] = n
			}
			if n < first[text]*8/10 || first[text] < 10_000 {
				t.Errorf("%s: %d keys, and %d before", text, n, first[text])
			}
		}
	}
	if got := s.Stats(); got.Bytes > got.MaxBytes {
		t.Errorf("%+v", got)
	}
}

// TestOwnersAreBounded: names without end cost bounded memory, share one part beyond a number, and
// are evicted.
func TestOwnersAreBounded(t *testing.T) {
	s := memory.New(memory.Options{MaxKeys: 8000})
	for i := range 6000 {
		if !take1(t, bindNamed(t, s, fmt.Sprint(i), "1/1h").binding, "k", 0) {
			t.Fatalf("name %d: %+v", i, s.Stats())
		}
	}
	if largest := s.Largest(); largest.Name != "all other names" || largest.Keys < 1900 {
		t.Errorf("%+v, want those of the names beyond 4096", largest)
	}
}

// TestNamesBeyondOwnersHaveOneBudget: a name that shares the part of the names beyond 4096 keeps
// its units when other names are no longer in use.
func TestNamesBeyondOwnersHaveOneBudget(t *testing.T) {
	s := memory.New(memory.Options{})
	var others []store.Binding
	for i := range 4096 {
		others = append(others, bindNamed(t, s, fmt.Sprint(i), "1/1h").binding)
	}
	if !take1(t, bindNamed(t, s, "late", "1/1h").binding, "k", 0) {
		t.Fatal("the first take is denied")
	}
	runtime.KeepAlive(others)
	for range few(50, 10) { // until the unused bindings are garbage, and new names search for vacant parts
		runtime.GC()
		if take1(t, bindNamed(t, s, "late", "1/1h").binding, "k", 0) {
			t.Fatal("a second take of 1/1h is admitted")
		}
	}
}

// TestLateCommitsStayWithinMaxBytes: late commits without memory for an entry of a log each are
// charged as a debt.
func TestLateCommitsStayWithinMaxBytes(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: memory.MinMaxBytes})
	const count = 50_000
	b := bindNamed(t, s, "name", fmt.Sprintf("sliding-log %d/1h", count)).binding
	for i := 0; s.Stats().Refused == 0; i++ {
		do(t, b, fmt.Sprint(i%20), algorithm.Op{Cost: 1}, int64(i))
	}
	used := count - do(t, b, "0", algorithm.Op{}, second).Remaining
	commits := few[int64](15_000, 3000)
	for i := range commits {
		op := algorithm.Op{Kind: algorithm.Commit, Late: true, Cost: 1, ID: i + 1}
		if v := do(t, b, "0", op, second+i); v.Granted != 1 {
			t.Fatalf("commit %d: %+v", i, v)
		}
	}
	if got := s.Stats(); got.Bytes > got.MaxBytes {
		t.Errorf("%+v", got)
	}
	left := count - used - commits
	if v := do(t, b, "0", algorithm.Op{Cost: left + 1}, 2*second); v.Granted >= 0 {
		t.Errorf("of %d units, %d are taken: %+v", left, left+1, v)
	}
	// The log can be evicted an hour after the first entries, the commits are charged for longer.
	for i := range 20 {
		do(t, b, fmt.Sprint(i), algorithm.Op{Kind: algorithm.Cancel, Cost: 1}, 3601*second-1)
	}
	if v := do(t, b, "0", algorithm.Op{}, 3601*second-1); v.Remaining != count-commits {
		t.Errorf("an hour after the takes: %+v, want %d", v, count-commits)
	}
	if v := do(t, b, "0", algorithm.Op{}, 3602*second); v.Remaining != count {
		t.Errorf("an hour after the commits: %+v", v)
	}
}

// TestScratchMemoryIsSmall: what operations on large states keep leaves a small store usable.
func TestScratchMemoryIsSmall(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: memory.MinMaxBytes})
	b := bindNamed(t, s, "name", "sliding-buckets 9/1h cells=3600").binding
	for i := range 2000 {
		do(t, b, fmt.Sprint(i), algorithm.Op{Cost: 1}, 0)
		do(t, b, fmt.Sprint(i), algorithm.Op{Kind: algorithm.Reset}, 0)
	}
	if got := s.Stats(); got.Keys != 0 || got.Bytes > got.MaxBytes/8 {
		t.Errorf("without keys: %+v", got)
	}
}

// TestLongNamesStayWithinMaxBytes: the store keeps only the start of a long name.
func TestLongNamesStayWithinMaxBytes(t *testing.T) {
	before := heap()
	s := memory.New(memory.Options{MaxBytes: maxBytes})
	long := strings.Repeat("n", 20_000)
	for i := range 1000 {
		take1(t, bindNamed(t, s, long+fmt.Sprint(i), "1/1h").binding, "k", 0)
	}
	if grown := heap() - before; grown > maxBytes {
		t.Errorf("the heap has grown by %d bytes, under a bound of %d", grown, maxBytes)
	}
	if got := len(s.Largest().Name); got != 64 {
		t.Errorf("the name of the largest has %d bytes, want 64", got)
	}
}

// TestStoreNeverAdmitsMoreThanAModel: random operations over several names in little memory, on the
// store and on accounts without a bound. Denials for want of memory change nothing; all further
// results equal the accounts'.
func TestStoreNeverAdmitsMoreThanAModel(t *testing.T) {
	texts := []string{"10/1h", "7/1s", "sliding-log 300/1h", "sliding-buckets 50/1h cells=700", "fixed-window 20/1m", "quota-reset 9/1h"}
	rapid.Check(t, func(t *rapid.T) {
		s := memory.New(memory.Options{MaxBytes: memory.MinMaxBytes})
		accounts := map[string][]algorithm.Account{} // the records that are possible
		now := int64(1_700_000_000_000_000_000)
		ballast, _ := s.Bind(store.Spec{Name: "ballast", Limit: algorithm.MustParseLimit("sliding-buckets 9/2h cells=3000")})
		for i := range rapid.IntRange(0, 60).Draw(t, "ballast") {
			_, _ = ballast.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, now)
		}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			name := fmt.Sprint("name", rapid.IntRange(0, 2).Draw(t, "name"))
			limit := algorithm.MustParseLimit(rapid.SampledFrom(texts).Draw(t, "limit"))
			p, err := algorithm.Compile(limit, time.Nanosecond)
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.Bind(store.Spec{Name: name, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "key"))
			op := algorithm.Op{
				Kind: rapid.SampledFrom([]algorithm.Kind{algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Reserve}).Draw(t, "kind"),
				Cost: rapid.Int64Range(1, 5).Draw(t, "cost"), ID: rapid.Int64Range(1, 1000).Draw(t, "id"), Life: 3600 * second,
			}
			now += rapid.SampledFrom([]int64{0, 1, 1e6, 1e9, 60e9}).Draw(t, "gap")
			got, err := b.Do(context.Background(), key, op, now)
			if err != nil {
				t.Fatal(err)
			}
			at := name + "/" + key
			if len(accounts[at]) == 0 {
				accounts[at] = []algorithm.Account{{}}
			}
			if slices.ContainsFunc(accounts[at], func(a algorithm.Account) bool { return a.Fresh(now) }) {
				accounts[at] = append(accounts[at], algorithm.Account{}) // it may have been evicted
			}
			var left []algorithm.Account
			for _, old := range accounts[at] {
				a := old
				a.State = append([]int64(nil), old.State...)
				next, want := a.Apply(p, op, now)
				full := got.Granted == -1 && got.Remaining == 0 && s.Stats().Refused+s.Stats().Overflowed > 0
				if got == want.Verdict() {
					left = append(left, next)
				}
				// A denied operation of another limit changes the record only if there is memory.
				if full && got != want.Verdict() || got == want.Verdict() && !want.Allowed && !old.Plain(p) {
					left = append(left, old)
				}
			}
			if accounts[at] = distinct(left); len(left) == 0 {
				t.Fatalf("%s %+v on %s: got %+v, which no account has", limit, op, at, got)
			}
			if len(accounts[at]) > 100 {
				return // too many are possible to go on
			}
			if st := s.Stats(); st.Bytes > st.MaxBytes {
				t.Fatalf("%+v", st)
			}
		}
	})
}

// distinct returns the accounts without those that stand twice in the list.
func distinct(accounts []algorithm.Account) []algorithm.Account {
	seen := map[string]bool{}
	return slices.DeleteFunc(accounts, func(a algorithm.Account) bool {
		text := fmt.Sprint(a.Head(), a.State)
		again := seen[text]
		seen[text] = true
		return again
	})
}

// TestFloodsRace: floods over several names and kinds at once, while keys are evicted, keep the
// bounds and the counts.
func TestFloodsRace(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: memory.MinMaxBytes})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			texts := []string{"10/1ms", "3/1ms", "sliding-log 20/1ms", "sliding-buckets 5/1ms cells=100"}
			text, name := texts[g%4], []string{"", "name"}[g/4]
			b := bindNamed(t, s, name, text).binding
			for i := range 40_000 / slowdown {
				do(t, b, fmt.Sprint(g, i), algorithm.Op{Cost: 1}, int64(i)*2000)
				if i%7 == 0 {
					do(t, b, fmt.Sprint(g, i), algorithm.Op{Kind: algorithm.Reset}, int64(i)*2000)
				}
				if st := s.Stats(); st.Keys < 0 || st.Bytes < 0 {
					t.Errorf("%+v", st)
				}
			}
		})
	}
	wg.Wait()
	// Everything is fresh now: one name can have its whole share.
	b := bindNamed(t, s, "last", "fixed-window 1/1h").binding
	n := 0
	for i := range 200_000 {
		if take1(t, b, fmt.Sprint(i), 3600*second) {
			n++
		}
	}
	if n < 3000 {
		t.Errorf("%d keys in an empty store: %+v", n, s.Stats())
	}
}
