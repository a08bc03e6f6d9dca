package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A taker charges all parts or none.
type taker func(context.Context, []store.Part, int64, []store.Outcome) ([]store.Outcome, error)

// jointly takes from several limits: with the store's own way if it has one, else in turn. oneStep says that nobody sees half of it.
func (k *check) jointly(s store.Store) (take taker, oneStep bool) {
	if joiner, ok := s.(store.Joiner); ok {
		return joiner.TakeAll, !k.harness.InTurn
	}
	return store.TakeInTurn, false
}

// jointAlone is pitfall S5: when nobody else asks, all parts are charged or none is, and each verdict is that of its limit. With the
// store's own way, and in turn.
func jointAlone(k *check) {
	s := k.trusting()
	takeAll, oneStep := k.jointly(s)
	// Parts of several keys may be taken in turn, and given back: of that some limits keep a trace.
	several := k.bindAll(s, traceless)
	one := several
	if oneStep {
		one = k.bindAll(s, slices.DeleteFunc(slices.Clone(limits), func(text string) bool { return algorithm.MustParseLimit(text).Strict }))
	}
	k.each(30, func(i int) {
		keys := []string{fmt.Sprint("client ", i), fmt.Sprint("group ", i), fmt.Sprint("address ", i)}
		j := &joint{check: k, random: k.random(i), take: takeAll}
		switch i % 3 {
		case 0:
			j.choose(one, keys[:1])
		case 1:
			j.choose(several, keys)
		default:
			j.take = store.TakeInTurn
			j.choose(several, keys)
		}
		now := start
		for range 30 {
			now += j.random.Int64N(2_000_000) * 1000
			j.ask(now)
		}
	})
}

// A joint is several limits that are taken together.
type joint struct {
	*check
	random   *rand.Rand
	take     taker
	of       []*bound
	parts    []store.Part
	accounts []algorithm.Account
	ids      int64
}

// choose makes parts of some of the limits.
func (j *joint) choose(from []*bound, keys []string) {
	for _, n := range j.random.Perm(len(from))[:1+j.random.IntN(5)] {
		b := from[n]
		j.of = append(j.of, b)
		j.parts = append(j.parts, store.Part{Binding: b.binding, Limit: b.limit, Name: b.spec.Name, Key: b.tag + keys[j.random.IntN(len(keys))]})
	}
	j.accounts = make([]algorithm.Account, len(j.parts))
}

// ask asks for random costs, as reservations some of them.
func (j *joint) ask(now int64) {
	for n := range j.parts {
		p := &j.parts[n]
		p.Cost = j.random.Int64N(min(4, p.Limit.Capacity()) + 1)
		if p.ID, p.Life = 0, 0; j.of[n].spec.Accounts() && j.random.IntN(4) == 0 {
			j.ids++
			p.ID, p.Life = j.ids, int64(time.Hour)
		}
	}
	had := []store.Outcome{{Verdict: algorithm.Verdict{Granted: 77}}}
	got, err := j.take(context.Background(), j.parts, now, slices.Clone(had))
	if err != nil || len(got) != len(j.parts)+1 || got[0] != had[0] {
		j.Fatalf("%d outcomes were appended for %d parts, error %v", len(got)-1, len(j.parts), err)
	}
	for n, want := range j.expect(now) {
		o, p := got[n+1], j.parts[n]
		j.of[n].wantf(o.Verdict, want, "part %d of %d, of cost %d under %q, reserved: %v", n+1, len(j.parts), p.Cost, p.Key, p.ID != 0)
		if o.At != store.OwnClock && j.ticks(o.At) != j.ticks(now) {
			j.Fatalf("part %d of %d took effect at %s, and is said to have at %s", n+1, len(j.parts), showTime(now), showTime(o.At))
		}
	}
	for n, p := range j.parts {
		if p.ID == 0 || j.random.IntN(2) == 0 {
			continue
		}
		op := algorithm.Op{Kind: algorithm.Commit, ID: p.ID, Cost: j.random.Int64N(p.Cost + 2)}
		a, r := j.would(n, op, now)
		j.accounts[n] = a
		j.of[n].wantf(j.of[n].do(p.Key, op, now), r.Verdict(), "settling part %d of %d, of cost %d, at %d", n+1, len(j.parts), p.Cost, op.Cost)
	}
}

// expect returns the verdicts on the parts.
func (j *joint) expect(now int64) []algorithm.Verdict {
	after, verdicts, passed := make([]algorithm.Account, len(j.parts)), make([]algorithm.Verdict, len(j.parts)), true
	for i := range j.of {
		op := algorithm.Op{Cost: j.parts[i].Cost}
		if id := j.parts[i].ID; id != 0 {
			op.Kind, op.ID, op.Life = algorithm.Reserve, id, j.parts[i].Life
		}
		a, r := j.would(i, op, now)
		after[i], verdicts[i] = a, r.Verdict()
		passed = passed && r.Allowed
	}
	if passed {
		j.accounts = after
		return verdicts
	}
	for i := range j.of {
		if verdicts[i].Granted >= 0 { // it is as a peek finds it
			_, r := j.would(i, algorithm.Op{}, now)
			verdicts[i] = r.Verdict()
		}
	}
	return verdicts
}

// would returns what an operation on a part's account does.
func (j *joint) would(i int, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
	a := j.accounts[i]
	a.State = slices.Clone(a.State)
	return a.Apply(j.of[i].program, j.inTicks(op), j.ticks(now))
}

// jointOfOneState is pitfall S6: the same limit twice in one request, and limits that changed.
func jointOfOneState(k *check) {
	s := k.trusting()
	for _, text := range traceless {
		b := k.bind(s, text)
		if b == nil || b.limit.Capacity() < 4 {
			continue
		}
		other := b.another(s, "fixed-window 7/1h")
		unnamed := k.bindUnnamed(s, text)
		part := func(b *bound, cost int64) store.Part {
			return store.Part{Store: s, Binding: b.binding, Limit: b.limit, Name: b.spec.Name, Key: b.tag + "key", Cost: cost}
		}
		got, err := store.TakeAll(k.Context(), []store.Part{part(b, 1), part(unnamed, 2), part(b, 3), part(unnamed, 1)}, start)
		if err != nil || len(got) != 4 {
			k.Fatalf("%v: one limit twice in a request: %d outcomes, error %v", b.limit, len(got), err)
		}
		for i, want := range []algorithm.Verdict{
			b.expect(start, algorithm.Op{Cost: 3}), b.expect(start, algorithm.Op{Cost: 2}), b.expect(start, algorithm.Op{Cost: 3}), b.expect(start, algorithm.Op{Cost: 2}),
		} {
			b.wantf(got[i].Verdict, want, "part %d of a request with one limit twice", i+1)
		}
		var a algorithm.Account
		a, _ = a.Apply(b.program, algorithm.Op{Cost: 3}, k.ticks(start))
		_, r := a.Apply(other.program, algorithm.Op{Cost: 1}, k.ticks(start))
		if got, err = store.TakeAll(k.Context(), []store.Part{part(other, 1), part(unnamed, 1)}, start); err != nil {
			k.Fatalf("%v, which was %v: %v", other.limit, b.limit, err)
		}
		other.wantf(got[0].Verdict, r.Verdict(), "together with another, under a name whose limit was %v", b.limit)
	}
}

// jointTimes gives back, at the times that a joint decision tells, what was taken.
func jointTimes(k *check) {
	s := k.asking()
	take, _ := k.jointly(s)
	all := k.bindAll(s, []string{"concurrent 25 lease=720h", "sliding-log 25/720h", "fixed-window 25/720h"})
	var parts []store.Part
	for _, b := range all {
		parts = append(parts, store.Part{Store: s, Binding: b.binding, Limit: b.limit, Name: b.spec.Name, Key: b.tag + "key", Cost: 2})
	}
	got, err := take(k.Context(), parts, store.OwnClock, nil)
	if err != nil || len(got) != len(parts) {
		k.Fatalf("%d outcomes for %d parts, error %v", len(got), len(parts), err)
	}
	for i, b := range all {
		end, known := got[i].End()
		if !known {
			k.Skip("the store does not tell the times of joint decisions")
		}
		if off := time.Since(time.Unix(0, got[i].At)); off.Abs() > time.Minute {
			k.Fatalf("%v: part %d took effect %v ago, it is said", b.limit, i+1, off)
		}
		b.take("key", 1, store.OwnClock)
		v := b.do("key", algorithm.Op{Kind: algorithm.Cancel, Cost: 2, End: end}, store.OwnClock)
		if left := b.limit.Capacity() - 1; v.Granted != 2 || v.Remaining != left {
			k.Fatalf("%v: what part %d took was given back by its time and reset: %s, want 2 granted and %d remaining", b.limit, i+1, show(v), left)
		}
	}
}

// jointUnderConcurrency is pitfall S6: from two stores, in two orders.
func jointUnderConcurrency(k *check) {
	s := k.trusting()
	stores := []store.Store{s, s}
	if k.shared() {
		stores[1] = k.trusting()
	}
	var specs []store.Spec
	for _, limit := range k.accepted([]string{"50/720h", "fixed-window 40/720h", "sliding-log 1000/720h"}) {
		specs = append(specs, store.Spec{Limit: limit, Name: k.name()})
	}
	parts := make([][]store.Part, len(stores))
	for i, s := range stores {
		for _, spec := range specs {
			b := k.bindSpec(s, spec)
			parts[i] = append(parts[i], store.Part{Binding: b.binding, Limit: spec.Limit, Name: spec.Name, Key: "key", Cost: 1})
		}
	}
	slices.Reverse(parts[1])
	asked, total := k.raceJointly(stores, parts)
	_, oneStep := k.jointly(s)
	smallest := slices.MinFunc(specs, func(a, b store.Spec) int { return cmp.Compare(a.Limit.Capacity(), b.Limit.Capacity()) })
	if most := smallest.Limit.Capacity(); total > most || oneStep && total != most {
		k.Fatalf("%d of %d requests passed all limits, want %d", total, asked, most)
	}
	for _, spec := range specs {
		b := k.bindSpec(s, spec)
		if got, want := b.peek("key", start).Remaining, spec.Limit.Capacity()-total; got != want {
			k.Fatalf("%v: when %d requests had passed, %d remained; want %d", spec.Limit, total, got, want)
		}
	}
}

// raceJointly asks for the parts of the stores from many goroutines, and returns how often, and how often they passed. A quarter of those who ask
// reserve one of the parts.
func (k *check) raceJointly(stores []store.Store, parts [][]store.Part) (asked, passed int64) {
	const askers, times = 8, 20
	var total atomic.Int64
	k.together(askers, func(i int) {
		takeAll, _ := k.jointly(stores[i%2])
		for n := range times {
			parts := slices.Clone(parts[i%2])
			if i%4 == 1 {
				parts[0].ID, parts[0].Life = int64(1+i*times+n), int64(time.Hour)
			}
			got, err := takeAll(context.Background(), parts, start, nil)
			if err != nil {
				k.Fatalf("parts in two orders: %v", err)
			}
			if !slices.ContainsFunc(got, func(o store.Outcome) bool { return o.Granted != 1 }) {
				total.Add(1)
			}
		}
	})
	return askers * times, total.Load()
}
