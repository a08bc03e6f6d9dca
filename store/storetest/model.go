package storetest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
)

// A model is all that the account of a key can be, by the operations on it and their verdicts. That is one, or two where a
// store may have forgotten one that was fresh, which shows only if time steps back. A model is never changed.
type model struct{ accounts []algorithm.Account }

// freshModel is the model of a key never seen.
func freshModel() model { return model{accounts: []algorithm.Account{{}}} }

// step returns the model after an operation with a verdict, at a time in ticks as those of the operation are; ok is false if
// the verdict can't be. want is what it should have been.
func (m model) step(p *algorithm.Program, op algorithm.Op, now int64, got algorithm.Verdict) (next model, want []algorithm.Verdict, ok bool) {
	for _, old := range m.mayBe(now) {
		old.State = slices.Clone(old.State)
		a, r := old.Apply(p, op, now)
		if v := r.Verdict(); v == got {
			next = next.with(a)
		} else {
			want = append(want, v)
		}
	}
	if len(next.accounts) == 0 {
		return m, want, false
	}
	return model{accounts: next.mayBe(now)}, nil, true
}

// mayBe returns the accounts, and that of a key never seen if one of them is fresh.
func (m model) mayBe(now int64) []algorithm.Account {
	if !m.fresh(now) {
		return m.accounts
	}
	return m.with(algorithm.Account{}).accounts
}

// fresh reports whether one of the accounts is.
func (m model) fresh(now int64) bool {
	return slices.ContainsFunc(m.accounts, func(a algorithm.Account) bool { return a.Fresh(now) })
}

// with returns the model with one more account.
func (m model) with(a algorithm.Account) model {
	if m.has(a) {
		return m
	}
	return model{accounts: append(slices.Clip(m.accounts), a)}
}

func (m model) has(a algorithm.Account) bool {
	return slices.ContainsFunc(m.accounts, func(b algorithm.Account) bool { return slices.Equal(a.State, b.State) && a.Head() == b.Head() })
}

func (m model) equal(o model) bool {
	return len(m.accounts) == len(o.accounts) && !slices.ContainsFunc(m.accounts, func(a algorithm.Account) bool { return !o.has(a) })
}

// hash does not depend on the order of the accounts.
func (m model) hash() (sum uint64) {
	for _, a := range m.accounts {
		h := uint64(14695981039346656037)
		for _, word := range a.State {
			h = (h ^ uint64(word)) * 1099511628211
		}
		for _, c := range []byte(a.Head()) {
			h = (h ^ uint64(c)) * 1099511628211
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
