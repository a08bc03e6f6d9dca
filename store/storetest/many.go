package storetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// batches holds a Batcher to what one request after another gives.
func batches(k *check) {
	s := k.trusting()
	all := k.bindAll(s, limits)
	if _, ok := all[0].binding.(store.Batcher); !ok {
		k.Skip("the store is no store.Batcher")
	}
	k.each(len(all), func(i int) {
		if batcher, ok := all[i].binding.(store.Batcher); ok {
			all[i].batches(batcher)
		}
	})
}

func (b *bound) batches(batcher store.Batcher) {
	random := b.random(b.limit)
	states := map[string][]int64{}
	first := algorithm.Decision{Limit: 77}
	for n, size := range []int{0, 1, 2, 33, 100, 3} {
		now := start + int64(n)*int64(b.limit.Period)/3000*1000
		requests := make([]store.KeyCost, size)
		for i := range requests {
			requests[i] = store.KeyCost{Key: fmt.Sprint("key ", random.IntN(12)), Cost: random.Int64N(4)}
		}
		decisions, err := batcher.TakeMany(context.Background(), slices.Clone(requests), now, []algorithm.Decision{first})
		if err != nil || len(decisions) != size+1 || decisions[0] != first {
			b.Fatalf("%v: %d decisions were appended for a batch of %d, error %v", b.limit, len(decisions)-1, size, err)
		}
		for i, r := range requests {
			state, want := b.program.Apply(states[r.Key], algorithm.Op{Cost: r.Cost}, b.ticks(now))
			states[r.Key] = state
			if decisions[i+1] != want.Decision {
				b.Fatalf("%v: request %d of a batch of %d, %+v: got %+v, want %+v", b.limit, i, size, r, decisions[i+1], want.Decision)
			}
		}
	}
}

// jointly takes from several limits: with the store's own way if it has one, else in turn. oneStep says that nobody sees half of it.
func (k *check) jointly(s store.Store) (take func(context.Context, []store.Part, int64, []store.Outcome) ([]store.Outcome, error), oneStep bool) {
	if joiner, ok := s.(store.Joiner); ok {
		return joiner.TakeAll, !k.harness.InTurn
	}
	return store.TakeInTurn, false
}

// jointAlone is pitfall S5: when nobody else asks, all parts are charged or none is, and each verdict is that of its limit.
func jointAlone(k *check) {
	s := k.trusting()
	takeAll, oneStep := k.jointly(s)
	// Parts of several keys may be taken in turn, and given back: of that some limits keep a trace.
	several := k.bindAll(s, traceless)
	one := several
	if oneStep {
		one = k.bindAll(s, slices.DeleteFunc(slices.Clone(limits), func(text string) bool { return algorithm.MustParseLimit(text).Strict }))
	}
	k.each(20, func(i int) {
		random := k.random(i)
		from, keys := one, []string{fmt.Sprint("client ", i)}
		if i%2 == 1 {
			from, keys = several, append(keys, fmt.Sprint("group ", i), fmt.Sprint("address ", i))
		}
		var j joint
		for _, n := range random.Perm(len(from))[:1+random.IntN(5)] {
			j.of = append(j.of, from[n])
			j.parts = append(j.parts, store.Part{Binding: from[n].binding, Limit: from[n].limit, Key: keys[random.IntN(len(keys))]})
		}
		j.states = make([][]int64, len(j.parts))
		now := start
		for range 30 {
			now += random.Int64N(2_000_000) * 1000
			for n := range j.parts {
				j.parts[n].Cost = random.Int64N(min(4, j.parts[n].Limit.Capacity()) + 1)
			}
			had := []store.Outcome{{Verdict: algorithm.Verdict{Granted: 77}}}
			got, err := takeAll(context.Background(), j.parts, now, had)
			if err != nil || len(got) != len(j.parts)+1 || got[0] != had[0] {
				k.Fatalf("%d verdicts were appended for %d parts, error %v", len(got)-1, len(j.parts), err)
			}
			for n, want := range j.expect(k.ticks(now)) {
				j.of[n].wantf(got[n+1].Verdict, want, "part %d of %d, of cost %d under %q", n+1, len(j.parts), j.parts[n].Cost, j.parts[n].Key)
			}
		}
	})
}

// A joint is several limits that are taken together.
type joint struct {
	of     []*bound
	parts  []store.Part
	states [][]int64
}

// expect returns the verdicts on the parts.
func (j *joint) expect(now int64) []algorithm.Verdict {
	after, verdicts, passed := make([][]int64, len(j.parts)), make([]algorithm.Verdict, len(j.parts)), true
	for i, b := range j.of {
		state, r := b.program.Apply(slices.Clone(j.states[i]), algorithm.Op{Cost: j.parts[i].Cost}, now)
		after[i], verdicts[i] = state, r.Verdict()
		passed = passed && r.Allowed
	}
	if passed {
		j.states = after
		return verdicts
	}
	for i, b := range j.of {
		if verdicts[i].Granted >= 0 { // it is as a peek finds it
			_, r := b.program.Apply(slices.Clone(j.states[i]), algorithm.Op{}, now)
			verdicts[i] = r.Verdict()
		}
	}
	return verdicts
}

// jointUnderConcurrency is pitfall S6: from two stores, in two orders.
func jointUnderConcurrency(k *check) {
	s := k.trusting()
	stores := []store.Store{s, s}
	if k.shared() {
		stores[1] = k.trusting()
	}
	texts := []string{"50/720h", "fixed-window 40/720h", "sliding-log 1000/720h"}
	var specs []store.Spec
	for _, text := range texts {
		if limit := algorithm.MustParseLimit(text); k.refused(limit) == "" {
			specs = append(specs, store.Spec{Limit: limit, Name: k.name()})
		}
	}
	parts := make([][]store.Part, len(stores))
	for i, s := range stores {
		for _, spec := range specs {
			b := k.bindSpec(s, spec)
			parts[i] = append(parts[i], store.Part{Binding: b.binding, Limit: spec.Limit, Key: "key", Cost: 1})
		}
	}
	slices.Reverse(parts[1])
	const askers, times = 8, 20
	passed := make([]int64, askers)
	k.together(askers, func(i int) {
		takeAll, _ := k.jointly(stores[i%2])
		for range times {
			got, err := takeAll(context.Background(), parts[i%2], start, nil)
			if err != nil {
				k.Fatalf("parts in two orders: %v", err)
			}
			if !slices.ContainsFunc(got, func(o store.Outcome) bool { return o.Granted != 1 }) {
				passed[i]++
			}
		}
	})
	total := int64(0)
	for _, n := range passed {
		total += n
	}
	_, oneStep := k.jointly(s)
	if most := smallest(specs); total > most || oneStep && total != most {
		k.Fatalf("%d of %d requests passed all of %q, want %d", total, askers*times, texts, most)
	}
	for _, spec := range specs {
		b := k.bindSpec(s, spec)
		if got, want := b.peek("key", start).Remaining, spec.Limit.Capacity()-total; got != want {
			k.Fatalf("%v: when %d requests had passed, %d remained; want %d", spec.Limit, total, got, want)
		}
	}
}

// smallest returns the least capacity.
func smallest(specs []store.Spec) int64 {
	least := specs[0].Limit.Capacity()
	for _, spec := range specs {
		least = min(least, spec.Limit.Capacity())
	}
	return least
}
