package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// at returns n spans at one instant, in milliseconds.
func at(ms int64, n int) (all []span) {
	for range n {
		all = append(all, span{ms * 1e6, ms * 1e6})
	}
	return all
}

func join(all ...[]span) (one []span) {
	for _, spans := range all {
		one = append(one, spans...)
	}
	return one
}

func TestBoundsOfLimits(t *testing.T) {
	const second = 1_700_000_000_000
	for _, test := range []struct {
		limit string
		spans []span
		over  int64
	}{
		{"100/1s", nil, 0},
		{"100/1s", at(second, 100), 0},
		{"100/1s", at(second, 102), 2},
		{"100/1s", join(at(second, 100), at(second+10, 1), at(second+1000, 99)), 0},
		{"100/1s", join(at(second, 100), at(second+10, 2), at(second+1000, 99)), 1},
		{"100/1s", join(at(second, 100), []span{{second * 1e6, second*1e6 + 1e7}}), 0}, // the last span may end later
		{"fixed-window 100/1s", join(at(second+999, 100), at(second+1000, 100)), 0},
		{"fixed-window 100/1s", at(second+500, 101), 1},
		{"sliding-log 60/1s", join(at(second, 60), at(second+1000, 60)), 0},
		{"sliding-log 60/1s", join(at(second, 60), at(second+999, 3)), 3},
		{"sliding-window 100/1s", join(at(second+900, 100), at(second+1800, 99)), 0},
		{"sliding-window 100/1s", join(at(second+900, 100), at(second+1800, 101)), 2},
		{"concurrent 10 lease=2s", []span{{0, 10_000_000}, {10_000_000, 20_000_000}}, 0},
	} {
		var f findings
		for b, budget := range budgets {
			if budget.limit == test.limit {
				f.bound(state{b, 0}, test.spans)
				break
			}
		}
		if f.over != test.over {
			t.Errorf("%s, %d spans: %d over the bound, want %d", test.limit, len(test.spans), f.over, test.over)
		}
	}
	var held []span
	for i := range int64(12) {
		held = append(held, span{i * 1e6, 1e9 - i*1e6})
	}
	if over := overAtOnce(held, 10); over != 2 {
		t.Errorf("%d over the bound, want 2", over)
	}
}

// overLinear finds as many units over the bound as a search of all times does.
func TestOverLinear(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var spans []span
		for range 1 + random.IntN(40) {
			start := 1e6 * random.Int64N(100)
			spans = append(spans, span{start, start + 1e6*random.Int64N(10)})
		}
		const interval, capacity = 7e6, 3
		var want int64
		for _, a := range spans {
			for _, b := range spans {
				inside := int64(0)
				for _, s := range spans {
					if s.start >= a.start && s.end <= b.end {
						inside++
					}
				}
				if b.end >= a.start {
					want = max(want, inside-capacity-(b.end-a.start)/interval)
				}
			}
		}
		if got := overLinear(spans, interval, capacity); got != want {
			t.Errorf("seed %d: %d over the bound, want %d", seed, got, want)
		}
	}
}

// Units from before and after a loss are not added up. A unit from the time of the loss may belong
// to either side.
func TestSplitByLoss(t *testing.T) {
	spans := []span{{1, 2}, {3, 5}, {4, 6}, {5, 8}, {7, 9}}
	before, after := loss{span: span{4, 6}}.split(spans)
	if len(before) != 1 || len(after) != 1 || before[0] != spans[0] || after[0] != spans[4] {
		t.Errorf("%v before and %v after", before, after)
	}
	if before, after := (loss{}).split(spans); len(before) != 0 || len(after) != len(spans) {
		t.Errorf("without a loss: %v before and %v after", before, after)
	}
}

// Where the latest changes are lost, a settled reservation may stay charged in full, unless the units
// of lost takes make up for it.
func TestMostUnitsAfterALoss(t *testing.T) {
	take := func(start, end int64, e effect) call { return call{Start: start, End: end, Effect: e} }
	settle := func(start, settled, end int64, e effect) call {
		return call{Start: start, End: end, Release: settled, Effect: e}
	}
	at := loss{span: span{100, 110}}
	for name, test := range map[string]struct {
		lost         loss
		takes, holds []call
		want         int64
	}{
		"no loss":                         {loss{}, []call{take(1, 2, admitted), take(3, 4, unknown)}, []call{settle(5, 6, 7, admitted), settle(8, 9, 10, unknown)}, 6},
		"take before":                     {at, []call{take(1, 2, admitted)}, nil, 1},
		"settled before":                  {at, nil, []call{settle(1, 2, 3, admitted)}, 3},
		"settled before, both":            {at, nil, []call{settle(1, 2, 3, admitted), settle(4, 5, 6, admitted)}, 4},
		"settled before, at once":         {at, nil, []call{settle(1, 2, 5, admitted), settle(4, 5, 6, admitted)}, 6},
		"settled before, take between":    {at, []call{take(4, 5, admitted)}, []call{settle(1, 2, 3, admitted)}, 3},
		"settled before, takes between":   {at, []call{take(4, 5, admitted), take(6, 7, admitted), take(8, 9, admitted)}, []call{settle(1, 2, 3, admitted)}, 4},
		"settled during":                  {at, nil, []call{settle(1, 105, 106, admitted)}, 3},
		"settled after":                   {at, nil, []call{settle(1, 111, 112, admitted)}, 1},
		"after":                           {at, []call{take(111, 112, admitted)}, []call{settle(111, 112, 113, admitted)}, 2},
		"unknown before":                  {at, []call{take(1, 2, unknown)}, []call{settle(3, 0, 4, unknown)}, 4},
		"settled before, all data lost":   {loss{at.span, true}, []call{take(4, 5, admitted)}, []call{settle(1, 2, 3, admitted)}, 0},
		"during and after, all data lost": {loss{at.span, true}, []call{take(4, 105, admitted), take(111, 112, unknown)}, nil, 2},
	} {
		var charges []charge
		for _, c := range test.takes {
			charges = append(charges, c.charge(0))
		}
		for _, c := range test.holds {
			charges = append(charges, c.charge(hold))
		}
		if most := test.lost.most(charges); most != test.want {
			t.Errorf("%s: %d units, want %d", name, most, test.want)
		}
	}
}

func TestRecovery(t *testing.T) {
	var calls []call
	for i := range int64(100) {
		c := call{Start: 10 * i, End: 10*i + 5}
		if i < 30 || i == 40 || i == 90 {
			c.Effect = refused
		}
		calls = append(calls, c)
	}
	for mended, want := range map[int64]time.Duration{0: 415, 400: 15, 500: 5, 800: 0} {
		if got := recovery(calls, mended); got != want {
			t.Errorf("fault over at %d: recovery after %d, want %d", mended, got, want)
		}
	}
}

// A mutant is a store in memory with a defect.
type mutant struct {
	store.Store
	do    func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error)
	close func()
}

func (m mutant) Bind(spec store.Spec) (store.Binding, error) {
	b, err := m.Store.Bind(spec)
	return mutated{b, m}, err
}

func (m mutant) Close() error {
	if m.close != nil {
		m.close()
	}
	return nil
}

type mutated struct {
	store.Binding
	by mutant
}

func (m mutated) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if m.by.do == nil || op.Kind != algorithm.Take || op.Cost == 0 || rand.IntN(5) > 0 {
		return m.Binding.Do(ctx, key, op, now)
	}
	return m.by.do(m.Binding, key, op)
}

// The load and the checker find each defect, and nothing in a sound store, also where the latest
// changes are lost.
func TestCheckerFindsMutants(t *testing.T) {
	defer func(n int) { polls = n }(polls)
	polls = 5
	ctx := context.Background()
	do := func(b store.Binding, key string, op algorithm.Op) algorithm.Verdict {
		v, err := b.Do(ctx, key, op, store.OwnClock)
		if err != nil {
			t.Error(err)
		}
		return v
	}
	leak := make(chan struct{})
	defer close(leak)
	for name, test := range map[string]struct {
		mutant mutant
		want   string // in the findings
	}{
		"sound": {mutant{}, ""},
		"fails": {mutant{do: func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error) {
			if rand.IntN(2) == 0 {
				return algorithm.Verdict{}, store.ErrNothingDone
			}
			return do(b, key, op), errors.New("no reply")
		}}, ""},
		"admits too much": {mutant{do: func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error) {
			v := do(b, key, op)
			v.Granted = op.Cost
			return v, nil
		}}, "above the bound"},
		"forgets": {mutant{do: func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error) {
			v := do(b, key, op)
			do(b, key, algorithm.Op{Kind: algorithm.Reset})
			return v, nil
		}}, "units charged, and"},
		"charges twice": {mutant{do: func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error) {
			do(b, key, op)
			return do(b, key, op), nil
		}}, "a call that changed nothing was charged"},
		"denies that it charged": {mutant{do: func(b store.Binding, key string, op algorithm.Op) (algorithm.Verdict, error) {
			do(b, key, op)
			return algorithm.Verdict{}, store.ErrNothingDone
		}}, "a call that changed nothing was charged"},
		"leaves a goroutine": {mutant{close: func() {
			for range 100 { // more than end meanwhile of those before
				go func() { <-leak }()
			}
		}}, "goroutines left"},
	} {
		for _, loses := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/loss=%v", strings.ReplaceAll(name, " ", "-"), loses), func(t *testing.T) {
				found := findMutant(t, test.mutant, loses)
				if text := fmt.Sprint(found.wrong); test.want == "" && len(found.wrong) > 0 || !strings.Contains(text, test.want) {
					t.Errorf("found %.1000s; want %q", text, test.want)
				}
			})
		}
	}
}

// findMutant runs the load on a mutant in memory, which loses its latest changes meanwhile if loses.
func findMutant(t *testing.T, m mutant, loses bool) findings {
	kept := newLossy()
	m.Store = kept
	var count counter
	var lost loss
	stop := make(chan struct{})
	await := func(calls int64) {
		for count.load().Ended < calls {
			time.Sleep(time.Millisecond)
		}
	}
	before := runtime.NumGoroutine()
	go func() {
		defer close(stop)
		await(1000)
		if loses {
			lost = kept.lose(t)
		}
		await(2000)
	}()
	r, err := drive(m, before, 1, &count, stop)
	if err != nil {
		t.Fatal(err)
	}
	found := check(r.Calls, lost, func(b int, k int32) (int64, error) { return used(kept, b, k) })
	if r.Left > 0 {
		found.wrong = append(found.wrong, "goroutines left")
	}
	t.Logf("%d calls, %v by effect, %d over, %d lost, %d findings", len(r.Calls), found.counts, found.over, found.lost, len(found.wrong))
	return found
}
