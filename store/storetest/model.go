package storetest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// A model is all that the state of a key can be, by the operations on it and their verdicts. That is one state, or two where a
// store may have forgotten one that was fresh, which shows only if time steps back. A model is never changed.
type model struct{ states [][]int64 }

// fresh is the model of a key never seen.
func freshModel() model { return model{states: [][]int64{nil}} }

// step returns the model after an operation with a verdict, at a time in ticks as the operation's End is; ok is false if
// the verdict can't be. want is what it should have been.
func (m model) step(p *algorithm.Program, op algorithm.Op, now int64, got algorithm.Verdict) (next model, want []algorithm.Verdict, ok bool) {
	for _, old := range m.mayBe(p, now) {
		state, r := p.Apply(slices.Clone(old), op, now)
		if v := r.Verdict(); v == got {
			next = next.with(state)
		} else {
			want = append(want, v)
		}
	}
	if len(next.states) == 0 {
		return m, want, false
	}
	return model{states: next.mayBe(p, now)}, nil, true
}

// mayBe returns the states, and the empty one if one of them is fresh.
func (m model) mayBe(p *algorithm.Program, now int64) [][]int64 {
	if !m.fresh(p, now) {
		return m.states
	}
	return m.with(nil).states
}

// fresh reports whether one of the states is fresh.
func (m model) fresh(p *algorithm.Program, now int64) bool {
	return slices.ContainsFunc(m.states, func(s []int64) bool { return p.Fresh(slices.Clone(s), now) })
}

// with returns the model with one more state.
func (m model) with(state []int64) model {
	for _, s := range m.states {
		if slices.Equal(s, state) {
			return m
		}
	}
	return model{states: append(slices.Clip(m.states), slices.Clone(state))}
}

func (m model) equal(o model) bool {
	return len(m.states) == len(o.states) && !slices.ContainsFunc(m.states, func(s []int64) bool {
		return !slices.ContainsFunc(o.states, func(t []int64) bool { return slices.Equal(s, t) })
	})
}

// hash does not depend on the order of the states.
func (m model) hash() (sum uint64) {
	for _, s := range m.states {
		h := uint64(14695981039346656037)
		for _, word := range s {
			h = (h ^ uint64(word)) * 1099511628211
		}
		sum += h
	}
	return sum
}

// showAll tells verdicts.
func showAll(all []algorithm.Verdict) string {
	var b strings.Builder
	for i, v := range all {
		if i > 0 {
			b.WriteString(" or ")
		}
		b.WriteString(show(v))
	}
	return b.String()
}

// showTime tells a time as nanoseconds since start.
func showTime(now int64) string { return strconv.FormatInt(now-start, 10) + "ns" }
