package algorithm_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

func program(t testing.TB, text string) *algorithm.Program {
	t.Helper()
	p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// S18: used 10 of 10, raised to 20, lowered to 10, raised again: 10 more once, and nothing more.
func TestPitfallS18RaisingAndLoweringGivesNothingAway(t *testing.T) {
	low, high := eachAlgorithm("10/1h"), eachAlgorithm("20/1h")
	for i := range low {
		t.Run(low[i], func(t *testing.T) {
			limits := []*algorithm.Program{program(t, low[i]), program(t, high[i])}
			var a algorithm.Account
			took := int64(0)
			for change := range 7 {
				var r algorithm.Result
				a, r = a.Apply(limits[change%2], upTo(100), 1_700_000_000_000_000)
				took += r.Granted
			}
			if want := limits[1].Limit().Capacity(); took != want {
				t.Errorf("took %d, want %d", took, want)
			}
		})
	}
}

// changing draws some limits of any algorithms, as one name may have, in the same ticks.
func changing(t *rapid.T, algorithms ...algorithm.Algorithm) (programs []*algorithm.Program) {
	tick := rapid.SampledFrom([]time.Duration{time.Nanosecond, time.Microsecond}).Draw(t, "tick")
	for len(programs) < 1+rapid.IntRange(1, 4).Draw(t, "how many limits") {
		l := limits(rapid.SampledFrom(algorithms).Draw(t, "algorithm")).Draw(t, "limit")
		if p, err := algorithm.Compile(l, tick); err == nil {
			programs = append(programs, p)
		} else if tick == time.Microsecond {
			t.Skip("a limit of nanoseconds")
		}
	}
	return programs
}

// TestS18AnyChangesAtOneInstant: whatever the limits and however they change, no more is admitted than the greatest of them admits to a fresh key.
func TestS18AnyChangesAtOneInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := changing(t, algorithm.All()...)
		now := rapid.Int64Range(-algorithm.MaxTime, algorithm.MaxTime).Draw(t, "now") / int64(programs[0].Tick())
		var a algorithm.Account
		var took, most int64
		for range 2 * steps {
			p := rapid.SampledFrom(programs).Draw(t, "in force")
			most = max(most, p.Limit().Capacity())
			cost := anySize(t, "cost")
			if rapid.Bool().Draw(t, "small") {
				cost = rapid.Int64Range(1, 3).Draw(t, "cost")
			}
			var r algorithm.Result
			if a, r = a.Apply(p, upTo(cost), now); r.Granted > most-took {
				t.Fatalf("%v admits %d after %d, of at most %d: %s %d", p.Limit(), r.Granted, took, most, a.Head(), a.State)
			}
			took += r.Granted
		}
	})
}

// TestS18WhatWasUsedStaysUsed: at the instant of a change to a limit that was not in force lately, as much is left as its capacity has more than was used.
func TestS18WhatWasUsedStaysUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := changing(t, algorithm.All()...)
		old, next := programs[0], programs[1]
		tr := newTrace(t, old.Limit(), true)
		tick := int64(old.Tick())
		var a algorithm.Account
		for range rapid.IntRange(0, 12).Draw(t, "requests before") {
			now, cost := tr.next(t)
			var r algorithm.Result
			a, r = a.Apply(old, upTo(cost), now/tick)
			tr.last = r.Decision
		}
		now, _ := tr.next(t)
		now /= tick
		_, before := a.Apply(old, algorithm.Op{}, now)
		_, peeked := a.Apply(next, algorithm.Op{}, now)
		cost := rapid.Int64Range(1, next.Limit().Capacity()).Draw(t, "cost")
		changed, after := a.Apply(next, algorithm.Op{Cost: cost}, now)
		if old.Limit() == next.Limit() || old.Limit().Strict { // which counts denials beyond its capacity
			return
		}
		capacity := next.Limit().Capacity()
		left := capacity - min(capacity, old.Limit().Capacity()-before.Remaining)
		if peeked.Remaining != left || after.Allowed != (cost <= left) {
			t.Fatalf("%v to %v at %d: %+v before, then %+v, and of %d %+v; want %d left", old.Limit(), next.Limit(), now, before, peeked, cost, after, left)
		}
		checkRetryOfAccount(t, changed, next, after, cost, now)
	})
}

// checkRetryOfAccount: a denied request passes after its wait, and not before.
func checkRetryOfAccount(t *rapid.T, a algorithm.Account, p *algorithm.Program, r algorithm.Result, cost, now int64) {
	if r.Allowed || r.RetryAfter == algorithm.Never {
		return
	}
	wait, most := int64(r.RetryAfter/p.Tick()), algorithm.MaxTime/int64(p.Tick())
	if wait <= 0 {
		t.Fatalf("%v: denied with %+v", p.Limit(), r)
	}
	for _, at := range []int64{now + wait - 1, now + wait} {
		if at > most {
			return
		}
		if _, again := cloneAccount(a).Apply(p, algorithm.Op{Cost: cost}, at); again.Allowed != (at == now+wait) {
			t.Fatalf("%v: cost %d at %d has %+v, and %d later %+v; %s %d", p.Limit(), cost, now, r, at-now, again, a.Head(), a.State)
		}
	}
}

func cloneAccount(a algorithm.Account) algorithm.Account {
	a.State = slices.Clone(a.State)
	return a
}

// TestAccountOfOneLimitIsItsState, whatever is done with it.
func TestAccountOfOneLimitIsItsState(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) {
		p, tr := compile(t, l), newTrace(t, l, true)
		var a algorithm.Account
		var state []int64
		for range steps {
			now, cost := tr.next(t)
			op := algorithm.Op{Kind: anyKind(t), Cost: cost, End: now + int64(tr.last.ResetAfter)}
			var got, want algorithm.Result
			a, got = a.Apply(p, op, now)
			state, want = p.Apply(state, op, now)
			if got != want || !slices.Equal(a.State, state) || !a.Plain(p) || len(state) > 0 && a.Head() != p.Head() {
				t.Fatalf("%v: %+v at %d: account %+v %d %q, program %+v %d", l, op, now, got, a.State, a.Head(), want, state)
			}
			if fresh := p.Fresh(state, now); a.Fresh(now) != fresh || a.Life(now) != int64(want.ResetAfter) {
				t.Fatalf("%v: life %d of %d, and reset after %d", l, a.Life(now), state, want.ResetAfter)
			}
			tr.last = got.Decision
		}
	})
}

// TestAccountThroughAnyChanges does everything with accounts whose limits change, at any times, and through what a store keeps of them.
func TestAccountThroughAnyChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := changing(t, algorithm.All()...)
		tick := int64(programs[0].Tick())
		rewinds := rapid.Bool().Draw(t, "time steps back")
		tr := newTrace(t, programs[0].Limit(), rewinds)
		var a algorithm.Account
		for range steps {
			p := rapid.SampledFrom(programs).Draw(t, "in force")
			now, cost := tr.next(t)
			now /= tick
			op := algorithm.Op{
				Kind: rapid.SampledFrom(everyKind).Draw(t, "kind"), Cost: cost, End: now + int64(tr.last.ResetAfter)/tick,
				ID: rapid.Int64Range(1, 4).Draw(t, "id"), Life: anySize(t, "life"),
			}
			if rapid.IntRange(0, 9).Draw(t, "heal") == 0 {
				a.Heal(now)
				if a.Heal(now) {
					t.Fatalf("healed twice: %s %d", a.Head(), a.State)
				}
			}
			before, head := cloneAccount(a), a.Head()
			read, err := algorithm.ReadHead(p, head, slices.Clone(a.State))
			if err != nil {
				t.Fatalf("%s %d: %v", head, a.State, err)
			}
			var r, same algorithm.Result
			a, r = a.Apply(p, op, now)
			read, same = read.Apply(p, op, now)
			if r != same || read.Head() != a.Head() || !slices.Equal(read.State, a.State) {
				t.Fatalf("%s %d, %+v at %d: %+v, and read back %+v", head, before.State, op, now, r, same)
			}
			if err := a.Check(); err != nil {
				t.Fatalf("%s %d, %+v at %d: %v", head, before.State, op, now, err)
			}
			checkSaneAccount(t, p, op, r, head)
			if peeks := op.Kind <= algorithm.TakeUpTo && cost == 0; peeks && (a.Head() != head || !slices.Equal(a.State, before.State)) {
				t.Fatalf("a peek changed %s %d to %s %d", head, before.State, a.Head(), a.State)
			}
			if checkLife(t, a, now); !rewinds {
				checkLikeFresh(t, programs, a, now)
			}
			tr.last = r.Decision
		}
	})
}

var everyKind = []algorithm.Kind{
	algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Cancel, algorithm.Renew, algorithm.Reserve, algorithm.Reserve,
	algorithm.Commit, algorithm.Reset,
}

func checkSaneAccount(t *rapid.T, p *algorithm.Program, op algorithm.Op, r algorithm.Result, head string) {
	capacity := p.Limit().Capacity()
	sane := r.Remaining >= 0 && r.Remaining <= capacity && r.Limit == capacity && r.RetryAfter >= 0 && (r.RetryAfter > 0) != r.Allowed &&
		r.ResetAfter >= 0 && r.Delay >= 0 && r.Granted >= 0
	if !sane {
		t.Fatalf("%v: %+v on %s: %+v", p.Limit(), op, head, r)
	}
}

// checkLife: an account is fresh after its life, and not before if nothing is reserved or owed, which may come back, or be paid under another limit, in
// less time.
func checkLife(t *rapid.T, a algorithm.Account, now int64) {
	life := a.Life(now)
	if life < 0 || a.Fresh(now) != (life == 0) {
		t.Fatalf("%s %d at %d: life %d", a.Head(), a.State, now, life)
	}
	then := now + life
	if a.Program == nil || then > algorithm.MaxTime/int64(a.Program.Tick()) {
		return
	}
	const longest = 1 << 61 // of the spans in which a debt is paid, in nanoseconds
	if x := a.Extra; x != nil && x.Owed > 0 && life >= longest/int64(a.Program.Tick()) {
		return // the clock stepped back by more than 73 years: the debt may outlast the life
	}
	if !a.Fresh(then) {
		t.Fatalf("%s %d at %d: not fresh after %d, but %d more", a.Head(), a.State, now, life, a.Life(then))
	}
	if x := a.Extra; life > 0 && (x == nil || len(x.Holds) == 0 && x.Owed == 0) && a.Fresh(then-1) {
		t.Fatalf("%s %d at %d: fresh before %d", a.Head(), a.State, now, life)
	}
}

// checkLikeFresh: after its life an account answers as that of a key never seen, under each limit.
func checkLikeFresh(t *rapid.T, programs []*algorithm.Program, a algorithm.Account, now int64) {
	life := a.Life(now)
	then := now + life
	if then > algorithm.MaxTime/int64(programs[0].Tick()) {
		return
	}
	for _, p := range programs {
		for _, op := range []algorithm.Op{{Cost: p.Limit().Capacity()}, {}, {Kind: algorithm.Commit, ID: 1}} {
			_, got := cloneAccount(a).Apply(p, op, then)
			_, want := algorithm.Account{}.Apply(p, op, then)
			if got != want {
				t.Fatalf("%s %d at %d: %v after its life of %d: %+v, of a fresh key %+v", a.Head(), a.State, now, p.Limit(), life, got, want)
			}
		}
	}
}

// quick draws a limit that a trace of some hundred ticks meets often.
func quick(t *rapid.T) *algorithm.Program {
	a := rapid.SampledFrom(except(algorithm.Calendar)).Draw(t, "algorithm")
	l := limitAt(a, rapid.Int64Range(1, 6).Draw(t, "count"), time.Duration(rapid.Int64Range(6, 40).Draw(t, "period")))
	if a == algorithm.SlidingBuckets {
		l.Cells = 3
	}
	return compile(t, l)
}

// Units that are given back under one limit are given back under the others too.
func TestGivingBackUnderSeveralLimits(t *testing.T) {
	low, high := program(t, "10/1h"), program(t, "30/1h")
	const now = 1_700_000_000_000_000
	var a algorithm.Account
	a, _ = a.Apply(low, algorithm.Op{Cost: 10}, now)
	a, _ = a.Apply(high, algorithm.Op{Cost: 15}, now)
	a, _ = a.Apply(high, algorithm.Op{Kind: algorithm.Refund, Cost: 12}, now)
	if _, r := a.Apply(low, algorithm.Op{}, now); r.Remaining != 0 {
		t.Errorf("%+v: 13 of 10 are used", r)
	}
	a, _ = a.Apply(high, algorithm.Op{Kind: algorithm.Refund, Cost: 5}, now)
	if _, r := a.Apply(low, algorithm.Op{}, now); r.Remaining != 2 {
		t.Errorf("%+v: 8 of 10 are used", r)
	}
}

// A Reset forgets everything.
func TestResetForgetsTheAccount(t *testing.T) {
	low, high := program(t, "10/1h"), program(t, "30/1h")
	a, _ := algorithm.Account{}.Apply(low, algorithm.Op{Cost: 10}, 0)
	a, _ = a.Apply(high, algorithm.Op{Kind: algorithm.Reserve, Cost: 15, ID: 1, Life: 100}, 0)
	a, r := a.Apply(low, algorithm.Op{Kind: algorithm.Reset}, 0)
	if a.Program != nil || len(a.State) > 0 || a.Extra != nil || r.Remaining != 10 || a.Life(0) != 0 || a.Head() != "" {
		t.Errorf("%+v, %+v", a, r)
	}
}

// An account's Extra is shared by copies of the account, and is never changed.
func TestExtraIsNeverChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := []*algorithm.Program{quick(t), quick(t), quick(t)}
		var a algorithm.Account
		var now int64
		for range 2 * steps {
			var before algorithm.Extra
			extra := a.Extra
			if extra != nil {
				before = deepCopy(*extra)
			}
			now += rapid.Int64Range(0, 5).Draw(t, "gap")
			op := algorithm.Op{
				Kind: rapid.SampledFrom(everyKind[:9]).Draw(t, "kind"), Cost: rapid.Int64Range(0, 9).Draw(t, "cost"),
				ID: rapid.Int64Range(1, 3).Draw(t, "id"), Life: rapid.Int64Range(1, 20).Draw(t, "life"), End: now + 5,
			}
			if rapid.Bool().Draw(t, "heal") {
				a.Heal(now - rapid.Int64Range(0, 100).Draw(t, "back"))
			}
			a, _ = a.Apply(rapid.SampledFrom(programs).Draw(t, "in force"), op, now)
			if extra != nil && !reflect.DeepEqual(before, *extra) {
				t.Fatalf("%+v became %+v", before, *extra)
			}
		}
	})
}

func deepCopy(x algorithm.Extra) algorithm.Extra {
	x.Holds = slices.Clone(x.Holds)
	return x
}
