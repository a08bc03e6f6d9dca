package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A step is an operation at a time after the beginning of a script.
type step struct {
	op    algorithm.Op
	after time.Duration
}

func take(cost int64, after time.Duration) step { return step{algorithm.Op{Cost: cost}, after} }
func peek(after time.Duration) step             { return take(0, after) }

func takeUpTo(cost int64, after time.Duration) step {
	return step{algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}, after}
}

func refund(cost int64, after time.Duration) step {
	return step{algorithm.Op{Kind: algorithm.Refund, Cost: cost}, after}
}

func reserve(id, cost int64, life, after time.Duration) step {
	return step{algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: cost, Life: int64(max(time.Microsecond, life.Truncate(time.Microsecond)))}, after}
}

func commit(id, cost int64, after time.Duration) step {
	return step{algorithm.Op{Kind: algorithm.Commit, ID: id, Cost: cost}, after}
}

func commitLate(id, cost int64, after time.Duration) step {
	return step{algorithm.Op{Kind: algorithm.Commit, Late: true, ID: id, Cost: cost}, after}
}

// A script is what a rule does to one key. Every verdict must be what the account says.
type script struct {
	*bound  // which may be another in the course of the script, of the same name
	key     string
	account algorithm.Account
	shown   []string
}

func (b *bound) script(key string) *script { return &script{bound: b, key: key} }

// follow carries out steps, and returns the last verdict.
func (s *script) follow(steps ...step) (got algorithm.Verdict) {
	s.Helper()
	for _, step := range steps {
		now := start + int64(step.after.Truncate(time.Microsecond))
		var r algorithm.Result
		s.account.State = slices.Clone(s.account.State)
		s.account, r = s.account.Apply(s.program, s.inTicks(step.op), s.ticks(now))
		got = s.do(s.key, step.op, now)
		s.shown = append(s.shown, fmt.Sprintf("at %s %v: %s: %s", showTime(now), s.limit, describe(step.op), show(got)))
		if want := r.Verdict(); got != want {
			s.Fatalf("%v: the last of these steps should be %s:\n\t%s", s.limit, show(want), strings.Join(s.shown, "\n\t"))
		}
	}
	return got
}

// demand fails unless a condition holds after the last step.
func (s *script) demand(ok bool, what string) {
	s.Helper()
	if !ok {
		s.Fatalf("%v: %s:\n\t%s", s.limit, what, strings.Join(s.shown, "\n\t"))
	}
}

// scripts runs a script under each limit.
func (k *check) scripts(texts []string, play func(s *script)) {
	k.Helper()
	all := k.bindAll(k.trusting(), texts)
	k.each(len(all), func(i int) { play(all[i].script("key")) })
}

// scriptsOfNames runs a script under each limit, of which each has a name.
func (k *check) scriptsOfNames(texts []string, play func(s *script)) {
	k.Helper()
	all := k.bindNamed(k.trusting(), texts)
	k.each(len(all), func(i int) { play(all[i].script("key")) })
}

// interval is the time between units, and at least a microsecond.
func (b *bound) interval() time.Duration {
	return max(time.Microsecond, b.limit.Period/time.Duration(b.limit.Count))
}
