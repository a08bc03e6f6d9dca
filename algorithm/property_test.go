package algorithm_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// steps is how many requests a trace makes.
const steps = 30

func TestProgramAgreesWithModel(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) { newWitness(t, l, false).watch(t, steps) })
}

func TestProgramAgreesWithModelWhenTimeStepsBack(t *testing.T) {
	forAll(t, func(t *rapid.T, l algorithm.Limit) { newWitness(t, l, true).watch(t, steps) })
}

// A witness runs a program and a model through one trace, and asks of every decision whether it is true.
type witness struct {
	program  *algorithm.Program
	model    model
	trace    *trace
	state    []int64
	capacity int64
}

func newWitness(t *rapid.T, l algorithm.Limit, rewind bool) *witness {
	return &witness{program: compile(t, l), model: newModel(l), trace: newTrace(t, l, rewind), capacity: l.Capacity()}
}

func (w *witness) watch(t *rapid.T, steps int) {
	for range steps {
		now, cost := w.trace.next(t)
		var r algorithm.Result
		if rapid.IntRange(0, 5).Draw(t, "up to") == 0 {
			r = w.takeUpTo(t, now, cost)
		} else {
			r = w.take(t, now, cost)
		}
		w.trace.last = r.Decision
		w.checkRemaining(t, r, now)
		w.checkReset(t, r, now)
	}
}

func (w *witness) take(t *rapid.T, now, cost int64) algorithm.Result {
	before := slices.Clone(w.state)
	want := yes
	if cost > 0 {
		want = w.model.fits(now, cost)
	}
	wantDelay := big.NewInt(0)
	if q, ok := w.model.(queue); ok && cost > 0 {
		wantDelay = ceiling(q.delay(now))
	}
	state, r := w.program.Apply(w.state, algorithm.Op{Cost: cost}, now)
	w.state = state
	if !want.allows(r.Allowed) {
		t.Fatalf("cost %d at %d: program says %+v, model %v", cost, now, r, want)
	}
	if r.Allowed {
		w.allowed(t, r, cost, wantDelay.Int64())
	} else {
		w.denied(t, r, now, cost, before)
	}
	switch {
	case cost == 0 && !slices.Equal(state, before):
		t.Fatalf("a peek changed the state from %d to %d", before, state)
	case cost > 0 && r.Allowed:
		w.model.admit(now, cost)
	}
	return r
}

func (w *witness) allowed(t *rapid.T, r algorithm.Result, cost, delay int64) {
	if r.RetryAfter != 0 || r.Granted != cost || r.Limit != w.capacity || int64(r.Delay) != delay {
		t.Fatalf("cost %d allowed with %+v; want no wait, the cost granted, limit %d, delay %d", cost, r, w.capacity, delay)
	}
}

func (w *witness) denied(t *rapid.T, r algorithm.Result, now, cost int64, before []int64) {
	strict, counts := w.model.(hardened)
	if counts && cost <= w.capacity {
		strict.deny(now, cost)
	} else if !slices.Equal(w.state, before) {
		t.Fatalf("a denial changed the state from %d to %d", before, w.state)
	}
	if r.Granted != 0 || r.Delay != 0 || r.Limit != w.capacity {
		t.Fatalf("cost %d denied with %+v", cost, r)
	}
	w.checkRetry(t, r, now, cost)
}

// takeUpTo is a take of what there is room for, or, when there is none, of one unit.
func (w *witness) takeUpTo(t *rapid.T, now, cost int64) algorithm.Result {
	_, room := w.program.Apply(slices.Clone(w.state), algorithm.Op{}, now)
	want := min(cost, room.Remaining)
	other, r := w.program.Apply(slices.Clone(w.state), algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}, now)
	if r.Granted != want || r.Allowed != (want > 0 || cost == 0) {
		t.Fatalf("up to %d of %d: %+v", cost, room.Remaining, r)
	}
	same := w.take(t, now, min(cost, max(want, 1)))
	if same != r || !slices.Equal(other, w.state) {
		t.Fatalf("up to %d: %+v with state %d, but a take of %d: %+v with state %d", cost, r, other, want, same, w.state)
	}
	return r
}

// passes says whether a copy of the state would admit cost at a time. ok is false for a time no program takes.
func (w *witness) passes(now, cost int64) (passes, ok bool) {
	if now > algorithm.MaxTime {
		return false, false
	}
	_, r := w.program.Apply(slices.Clone(w.state), algorithm.Op{Cost: cost}, now)
	return r.Allowed, true
}

func (w *witness) checkRetry(t *rapid.T, r algorithm.Result, now, cost int64) {
	if (cost > w.capacity) != (r.RetryAfter == algorithm.Never) {
		t.Fatalf("cost %d of capacity %d: %+v", cost, w.capacity, r)
	}
	if cost > w.capacity {
		return
	}
	then := now + int64(r.RetryAfter)
	if r.RetryAfter <= 0 || !w.model.fits(then, cost).allows(true) || !w.model.fits(then-1, cost).allows(false) {
		t.Fatalf("cost %d at %d: the model does not pass at %v, or passes before", cost, now, r.RetryAfter)
	}
	if passes, ok := w.passes(then, cost); ok && !passes {
		t.Fatalf("cost %d at %d: denied after %v", cost, now, r.RetryAfter)
	}
	if passes, ok := w.passes(then-1, cost); ok && passes {
		t.Fatalf("cost %d at %d: allowed a nanosecond before %v", cost, now, r.RetryAfter)
	}
}

func (w *witness) checkRemaining(t *rapid.T, r algorithm.Result, now int64) {
	left := r.Remaining
	if left < 0 || left > w.capacity {
		t.Fatalf("remaining %d of %d", left, w.capacity)
	}
	if passes, _ := w.passes(now, left); !passes || left > 0 && !w.model.fits(now, left).allows(true) {
		t.Fatalf("at %d: remaining %d does not pass", now, left)
	}
	if left == w.capacity {
		return
	}
	if passes, _ := w.passes(now, left+1); passes || !w.model.fits(now, left+1).allows(false) {
		t.Fatalf("at %d: more than the remaining %d passes", now, left)
	}
}

func (w *witness) checkReset(t *rapid.T, r algorithm.Result, now int64) {
	then := now + int64(r.ResetAfter)
	if r.ResetAfter < 0 || !w.model.fresh(then).allows(true) || r.ResetAfter > 0 && !w.model.fresh(then-1).allows(false) {
		t.Fatalf("at %d: the model is not fresh after %v, or is before", now, r.ResetAfter)
	}
	if then > algorithm.MaxTime {
		return
	}
	if !w.program.Fresh(w.state, then) || r.ResetAfter > 0 && w.program.Fresh(w.state, then-1) {
		t.Fatalf("at %d: not fresh after %v, or before", now, r.ResetAfter)
	}
	w.checkLikeNew(t, then)
}

// checkLikeNew asks a fresh state and none the same things, from a time on.
func (w *witness) checkLikeNew(t *rapid.T, then int64) {
	likeNew := slices.Clone(w.state)
	var none []int64
	gaps := []int64{0, 1, int64(min(w.program.Limit().Period, 1<<60)), int64(time.Second)}
	cost := w.capacity
	for i := range 4 {
		var got, want algorithm.Result
		likeNew, got = w.program.Apply(likeNew, algorithm.Op{Cost: cost}, then)
		none, want = w.program.Apply(none, algorithm.Op{Cost: cost}, then)
		if got != want {
			t.Fatalf("%d after reset, cost %d at %d: %+v, but a new key: %+v", i, cost, then, got, want)
		}
		then = within(then + gaps[rapid.IntRange(0, 3).Draw(t, "gap after reset")])
		cost = rapid.Int64Range(1, w.capacity).Draw(t, "cost after reset")
	}
}
