package storetest

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

func shelfHarness(s *shelf) Harness {
	return Harness{
		Open: func(_ testing.TB, o Options) store.Store { return s.open(o) },
		Restart: func(testing.TB) {
			s.setAway(true)
			time.Sleep(5 * time.Millisecond)
			s.setAway(false)
		},
		Persistent: true,
	}
}

func (s *shelf) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// A mutant is a store with one fault, and the rules that must say so.
type mutant struct {
	fault  string
	rules  []string
	faults faults
}

// result is what an operation of a mutant does that is not as the program has it.
type result = func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result)

// changed is the same of an account.
type changed = func(b *shelfBinding, name string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result)

// when applies a fault to some operations, and leaves the others right.
func when(cond func(b *shelfBinding, op algorithm.Op) bool, wrong result) result {
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		if cond(b, op) {
			return wrong(b, name, state, op, now)
		}
		return b.program.Apply(state, op, now)
	}
}

func kind(k algorithm.Kind) func(*shelfBinding, algorithm.Op) bool {
	return func(_ *shelfBinding, op algorithm.Op) bool { return op.Kind == k }
}

func isPeek(_ *shelfBinding, op algorithm.Op) bool { return op.Kind == algorithm.Take && op.Cost == 0 }

var budgetMutants = []mutant{
	{"a cost of 0 is one of 1", []string{"A7-peek", "S19-peek-contended"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		if op.Kind == algorithm.Take {
			op.Cost = max(1, op.Cost)
		}
		return op
	}}},
	{"a peek forgets a key that is fresh when it looks", []string{"A7-peek", "T1-rewind"}, faults{apply: when(isPeek,
		func(b *shelfBinding, _ string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
			state, r := b.program.Apply(state, op, now)
			if b.program.Fresh(state, now) {
				state = nil
			}
			return state, r
		})}},
	{"one more than the capacity is admitted", []string{"vectors", "traces", "S3-goroutines", "A8-above-capacity"}, faults{spec: func(s store.Spec) store.Spec {
		if s.Limit = s.Limit.Canonical(); s.Limit.Burst > 0 && s.Limit.Count > 0 {
			s.Limit.Burst++
		}
		return s
	}}},
	{"a denial is charged with what remains", []string{"traces", "S4-denial"}, faults{
		apply: func(b *shelfBinding, _ string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
			state, r := b.program.Apply(state, op, now)
			if !r.Allowed && r.Remaining > 0 {
				state, _ = b.program.Apply(state, algorithm.Op{Cost: r.Remaining}, now)
			}
			return state, r
		}}},
	{"a refund goes above the capacity", []string{"traces", "S8-refund"}, faults{apply: aboveFull()}},
	{"a refund forgets the window", []string{"traces", "S8-refund"}, faults{apply: when(kind(algorithm.Refund),
		func(b *shelfBinding, _ string, _ []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
			return b.program.Apply(nil, op, now)
		})}},
	{"TakeUpTo takes all or nothing", []string{"traces", "A10-take-up-to"}, faults{apply: when(kind(algorithm.TakeUpTo),
		func(b *shelfBinding, _ string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
			return b.program.Apply(state, algorithm.Op{Cost: op.Cost}, now)
		})}},
	{"a cancel is a refund", []string{"traces", "cancel"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		if op.Kind == algorithm.Cancel {
			op.Kind = algorithm.Refund
		}
		return op
	}}},
	{"the end of a cancel is taken for microseconds", []string{"traces", "cancel"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		op.End *= 1000
		return op
	}}},
	{"costs are numbers of 53 bits", []string{"extremes"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		if op.Cost < 1<<62 {
			op.Cost = int64(float64(op.Cost))
		}
		return op
	}}},
	{"waits are rounded down to milliseconds", []string{"traces"}, faults{verdict: func(_ *shelfBinding, v algorithm.Verdict) algorithm.Verdict {
		if v.Wait != algorithm.Never {
			v.Wait = v.Wait.Truncate(time.Millisecond)
		}
		return v
	}}},
	{"what can never pass is told to come back", []string{"vectors", "traces", "A8-above-capacity"}, faults{verdict: func(_ *shelfBinding, v algorithm.Verdict) algorithm.Verdict {
		v.Wait = min(v.Wait, time.Hour)
		return v
	}}},
	{"a key starts anew when time steps back", []string{"traces", "T1-rewind"}, faults{apply: forgetful()}},
}

// aboveFull keeps what is given back above the capacity, and grants it later.
func aboveFull() result {
	credit := map[string]int64{}
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		if op.Kind == algorithm.Refund {
			credit[name]++
		}
		if op.Kind == algorithm.Take && op.Cost == 1 && credit[name] > 0 {
			credit[name]--
			_, r := b.program.Apply(slices.Clone(state), algorithm.Op{}, now)
			r.Granted = 1
			return state, r
		}
		return b.program.Apply(state, op, now)
	}
}

func forgetful() result {
	last := map[string]int64{}
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		if now < last[name] {
			state = nil
		}
		last[name] = now
		return b.program.Apply(state, op, now)
	}
}

// chargedInRaces charges the third request that a window denies.
func chargedInRaces() result {
	denied := map[string]int{}
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		state, r := b.program.Apply(state, op, now)
		if b.spec.Limit.Algorithm == algorithm.FixedWindow && !r.Allowed {
			if denied[name]++; denied[name] == 3 {
				state[1]++
			}
		}
		return state, r
	}
}

// lostInRaces does not charge the hundredth request of a key.
func lostInRaces() result {
	takes := map[string]int{}
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		old := slices.Clone(state)
		state, r := b.program.Apply(state, op, now)
		if takes[name]++; takes[name] == 100 {
			state = old
		}
		return state, r
	}
}

var concurrencyMutants = []mutant{
	{"an update is lost when two are under way", []string{"S3-goroutines", "linearizable", "linearizable-own-clock"},
		faults{unlocked: func(*shelfBinding, algorithm.Op) bool { return true }}},
	{"what one store does is lost when another does something", []string{"linearizable", "linearizable-own-clock", "S3-charged", "refund-races"},
		faults{shared: true, unlocked: func(*shelfBinding, algorithm.Op) bool { return true }}},
	{"what is given back to nothing is removed unseen", []string{"refund-races"},
		faults{shared: true, unlocked: kind(algorithm.Refund)}},
	{"a request that is denied in a race is charged", []string{"S3-goroutines", "S3-charged"}, faults{shared: true, apply: chargedInRaces()}},
	{"a unit of a race is not charged", []string{"S3-charged"}, faults{shared: true, apply: lostInRaces()}},
	{"a peek writes back what it has read", []string{"S19-peek-contended"}, faults{unlocked: isPeek}},
	{"an operation tells another time than its own", []string{"linearizable-own-clock"}, faults{stamp: func(us int64) int64 { return us - 300_000 }}},
	{"parts are taken without giving back", []string{"S5-joint", "S6-joint-concurrent"}, faults{
		joint: func(_ *shelfStore, parts []store.Part, now int64) (all []algorithm.Verdict) {
			for _, p := range parts {
				b := p.Binding.(*shelfBinding)
				all = append(all, b.apply(b.name(p.Key), algorithm.Op{Cost: p.Cost}, store.Microseconds(now)))
			}
			return all
		}}},
	{"parts are taken when the first admits", []string{"S5-joint"}, faults{
		joint: func(_ *shelfStore, parts []store.Part, now int64) (all []algorithm.Verdict) {
			for _, p := range parts {
				b := p.Binding.(*shelfBinding)
				v := b.apply(b.name(p.Key), algorithm.Op{Cost: p.Cost}, store.Microseconds(now))
				if all = append(all, v); all[0].Granted < 0 {
					break
				}
			}
			for len(all) < len(parts) {
				all = append(all, algorithm.Verdict{})
			}
			return all
		}}},
	{"a batch is decided from its end", []string{"batches"}, faults{batch: slices.Reverse[[]store.KeyCost]}},
}

// account applies a fault to accounts.
func account(f changed) faults { return faults{account: f} }

var changeMutants = []mutant{
	{"a change of limits makes a fresh key", []string{"S18-limit-change", "S18-lease-change", "S18-change-races", "S17-change-outlives", "change-traces", "linearizable-changes"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if a.Program != nil && a.Program.Limit() != b.program.Limit() {
				a = algorithm.Account{}
			}
			return a.Apply(b.program, op, now)
		})},
	{"a denial of another limit makes the record its own", []string{"S18-limit-change", "S18-change-races", "S17-change-outlives", "change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			a, r := a.Apply(b.program, op, now)
			if !r.Allowed && a.Extra == nil && len(a.State) > 0 {
				a = algorithm.Account{Program: b.program, State: a.View(b.program, now)}
			}
			return a, r
		})},
	{"a state is taken for one of the caller's limit", []string{"S18-limit-change", "S18-lease-change", "change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if a.Program != nil && b.program.Check(a.State) == nil {
				a.Program = b.program
			}
			return a.Apply(b.program, op, now)
		})},
	{"a look converts the key", []string{"change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if op.Cost == 0 && op.Kind == algorithm.Take {
				if state := a.View(b.program, now); a.Extra == nil && len(state) > 0 {
					a = algorithm.Account{Program: b.program, State: state}
				}
			}
			return a.Apply(b.program, op, now)
		})},
	{"a change is lost when two are under way", []string{"S18-change-races", "linearizable-changes"}, faults{shared: true, unlocked: func(*shelfBinding, algorithm.Op) bool { return true }}},
	{"a renewal is a take", []string{"traces", "renew"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		if op.Kind == algorithm.Renew {
			op.Kind = algorithm.Take
		}
		return op
	}}},
	{"a renewal gives the old lease back if the new one is denied, and takes nothing", []string{"traces", "renew"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if op.Kind == algorithm.Renew {
				op.Kind = algorithm.Cancel
			}
			return a.Apply(b.program, op, now)
		})},
}

// forEver is a life that does not end while a test runs.
const forEver = 1 << 50

var reservationMutants = []mutant{
	{"a reservation is a take", []string{"reserve", "reserve-changes", "reserve-races", "reserve-ends", "change-traces", "S5-joint"}, faults{
		op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
			if op.Kind == algorithm.Reserve {
				op.Kind = algorithm.Take
			}
			return op
		}}},
	{"a reservation stays when it is settled", []string{"reserve", "reserve-races", "change-traces", "linearizable-changes"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			old := a.Extra
			a, r := a.Apply(b.program, op, now)
			if op.Kind == algorithm.Commit && old != nil {
				if a.Extra = old; a.Program == nil {
					a.Program = b.program
				}
			}
			return a, r
		})},
	{"a reservation of an ID that is known is charged", []string{"reserve", "reserve-races"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			a, r := a.Apply(b.program, op, now)
			if op.Kind == algorithm.Reserve && r.Granted > 0 && r.ResetAfter > 0 {
				a, _ = a.Apply(b.program, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 1}, now)
			}
			return a, r
		})},
	{"a reservation is never over", []string{"reserve", "reserve-ends", "change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if op.Kind == algorithm.Reserve {
				op.Life = forEver
			}
			return a.Apply(b.program, op, now)
		})},
	{"a second reserve does not renew", []string{"reserve-renew", "change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			old := a.Extra
			a, r := a.Apply(b.program, op, now)
			if op.Kind == algorithm.Reserve && old != nil && a.Extra != nil && len(old.Holds) == len(a.Extra.Holds) {
				a.Extra = old
			}
			return a, r
		})},
	{"a late commit without a reservation is lost", []string{"reserve-renew", "change-traces", "linearizable-changes"}, faults{
		op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
			op.Late = false
			return op
		}}},
	{"a reservation is kept for as long as its units", []string{"reserve-ends"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			if p := a.Program; p != nil && p.Fresh(slices.Clone(a.State), now) {
				a = algorithm.Account{}
			}
			return a.Apply(b.program, op, now)
		})},
	{"what costs more than was reserved is forgiven", []string{"reserve", "change-traces"}, account(
		func(b *shelfBinding, _ string, a algorithm.Account, op algorithm.Op, now int64) (algorithm.Account, algorithm.Result) {
			a, r := a.Apply(b.program, op, now)
			if a.Extra != nil {
				x := *a.Extra
				x.Owed, x.Since = 0, 0
				a.Extra = &x
			}
			return a, r
		})},
	{"a commit is not seen by others who settle", []string{"reserve-races"}, faults{unlocked: kind(algorithm.Commit)}},
	{"the life of a reservation is taken for microseconds", []string{"reserve", "change-traces"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		op.Life *= 1000
		return op
	}}},
	{"who has no name may reserve", []string{"unnamed-reservations"}, faults{unnamed: true}},
	{"a reservation without a name is not made, and no error", []string{"unnamed-reservations"}, faults{unnamed: true, op: func(b *shelfBinding, op algorithm.Op) algorithm.Op {
		if !b.spec.Accounts() && op.Kind >= algorithm.Reserve {
			op = algorithm.Op{}
		}
		return op
	}}},
	{"a joint decision tells another time than its own", []string{"joint-times"}, faults{at: func(us int64) int64 { return us - 1 }}},
	{"parts of one name are charged each", []string{"S6-joint-same"}, faults{op: func(_ *shelfBinding, op algorithm.Op) algorithm.Op {
		if op.Kind == algorithm.Take && op.Cost == 3 {
			op.Cost = 4
		}
		return op
	}}},
}

func renamed(f func(spec store.Spec, key string) string) faults { return faults{name: f} }

func properly(spec store.Spec, key string) string {
	names, err := store.NewNames("", spec)
	if err != nil {
		panic(err)
	}
	return names.Name(key)
}

var keyMutants = []mutant{
	{"long keys are cut off", []string{"S12-keys"}, renamed(func(s store.Spec, key string) string { return properly(s, key[:min(len(key), 96)]) })},
	{"keys end at a NUL", []string{"S12-keys"}, renamed(func(s store.Spec, key string) string {
		key, _, _ = strings.Cut(key, "\x00")
		return properly(s, key)
	})},
	{"white space around keys is dropped", []string{"S12-keys"}, renamed(func(s store.Spec, key string) string { return properly(s, strings.TrimSpace(key)) })},
	{"invalid UTF-8 is replaced", []string{"S12-keys"}, renamed(func(s store.Spec, key string) string { return properly(s, strings.ToValidUTF8(key, "\ufffd")) })},
	{"keys are normalised", []string{"S13-spellings"}, renamed(func(s store.Spec, key string) string {
		return properly(s, strings.ReplaceAll(key, "e\u0301", "\u00e9"))
	})},
	{"names and keys are joined", []string{"S12-names"}, renamed(func(s store.Spec, key string) string {
		return s.Limit.String() + "|" + s.Name + ":" + key
	})},
	{"limits without a name share a state", []string{"S12-names"}, renamed(func(s store.Spec, key string) string {
		s.Limit = algorithm.MustParseLimit("1/1s")
		return properly(s, key)
	})},
	{"a name's limits have a state each", []string{"S18-limit-change", "S18-lease-change", "S18-change-races", "change-traces", "linearizable-changes", "reserve-changes", "batches"},
		renamed(func(s store.Spec, key string) string { return properly(s, s.Limit.Canonical().String()+"/"+key) })},
	{"each spelling of a limit has a state", []string{"sharing"}, renamed(func(s store.Spec, key string) string {
		if s.TimeDebt {
			return properly(s, key)
		}
		limit := s.Limit
		limit.Count++ // another that names may hold
		if s.Limit == s.Limit.Canonical() {
			limit.Count++
		}
		s.Limit = limit
		return properly(s, key)
	})},
	{"the limit as it is written is part of a name", []string{"sharing"}, renamed(func(s store.Spec, key string) string {
		return properly(s, fmt.Sprintf("%#v/%s", s.Limit, key))
	})},
	{"TimeDebt does not share", []string{"time-debt"}, faults{spec: func(s store.Spec) store.Spec {
		s.TimeDebt = false
		return s
	}}},
	{"a key's memory is kept", []string{"key-memory"}, faults{aliases: true}},
	{"a reset takes a pattern", []string{"S11-reset"}, faults{reset: func(s *shelf, b *shelfBinding, key string) {
		prefix, suffix, _ := strings.Cut(b.name("key"), "key")
		for name := range s.cells {
			inner, ok := strings.CutSuffix(strings.TrimPrefix(name, prefix), suffix)
			if matched, err := path.Match(key, inner); ok && err == nil && matched {
				delete(s.cells, name)
			}
		}
	}}},
	{"a reset leaves the key", []string{"S11-reset", "traces"}, faults{apply: when(kind(algorithm.Reset),
		func(b *shelfBinding, _ string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
			_, r := b.program.Apply(nil, op, now)
			return state, r
		})}},
}

var timeMutants = []mutant{
	{"any caller's time is taken", []string{"client-time"}, faults{trusts: func(bool) bool { return true }}},
	{"no caller's time is taken", []string{"client-time"}, faults{trusts: func(bool) bool { return false }}},
	{"the store's clock is an hour ahead", []string{"own-clock"}, faults{now: func(us int64) int64 { return us + int64(time.Hour/time.Microsecond) }}},
	{"the store's clock steps back", []string{"own-clock"}, faults{now: stepping()}},
	{"the store's clock stands still", []string{"S27-fresh-again"}, faults{now: standing()}},
	{"a key lives as long as its first debt", []string{"S17-last-debt"}, faults{apply: shortLived()}},
	{"a request whose context is over is charged", []string{"S20-cancelled"}, faults{late: true}},
	{"what an inspector shows is of another time", []string{"inspect"}, faults{inspect: func(s []int64, at int64) ([]int64, int64) { return s, at - 1_000_000 }}},
	{"a limit is refused without a reason", []string{"refusals"}, faults{bindErr: func(error) error { return errors.New("bad limit") }}},
	{"a limit is refused without what is accepted", []string{"refusals"}, faults{bindErr: func(error) error { return &algorithm.LimitError{Field: "count"} }}},
}

func stepping() func(int64) int64 {
	n := int64(0)
	return func(us int64) int64 {
		n++
		return us - n%2*1000
	}
}

func standing() func(int64) int64 {
	first := time.Now().UnixMicro()
	return func(int64) int64 { return first }
}

// shortLived forgets a key when its first debt is over, as one whose expiry is set when it is made.
func shortLived() result {
	ends := map[string]int64{}
	return func(b *shelfBinding, name string, state []int64, op algorithm.Op, now int64) ([]int64, algorithm.Result) {
		if now >= ends[name] {
			state = nil
		}
		made := len(state) == 0
		state, r := b.program.Apply(state, op, now)
		if made {
			ends[name] = now + int64(r.ResetAfter/time.Microsecond)
		}
		return state, r
	}
}

// TestEveryFaultIsFound runs stores with planted faults, each against the rules that must name it.
func TestEveryFaultIsFound(t *testing.T) {
	defer func(was time.Duration) { patience = was }(patience)
	patience = waited + time.Second
	found := map[string]bool{}
	for _, m := range slices.Concat(budgetMutants, concurrencyMutants, keyMutants, timeMutants, changeMutants, reservationMutants) {
		t.Run(strings.ReplaceAll(m.fault, " ", "-"), func(t *testing.T) {
			for _, rule := range m.rules {
				found[rule] = true
				r := m.hold(t, rule)
				for again := 0; again < 2 && !r.failed; again++ { // on a busy machine what goes wrong in a race, or within some ms, may not happen
					r = m.hold(t, rule)
				}
				if !r.failed {
					t.Errorf("the rule %s holds for a store of which %s; it said:\n%s", rule, m.fault, r.said.String())
				}
				if sentence := sentenceOf(rule); !strings.Contains(r.said.String(), sentence) {
					t.Errorf("the failure does not say %q, but:\n%s", sentence, r.said.String())
				}
			}
		})
	}
	for _, rule := range rules {
		if !found[rule.Name] && rule.Name != "S3-processes" && rule.Name != "restart" { // they have tests of their own
			t.Errorf("no fault is planted for %s", rule.Name)
		}
	}
}

// hold holds a store that has the fault to a rule.
func (m mutant) hold(t *testing.T, rule string) *recorder {
	t.Helper()
	h := shelfHarness(newShelf(m.faults))
	if m.faults.shared {
		h.Process = "here"
	}
	return holds(t, h, rule)
}

func sentenceOf(name string) string {
	for _, rule := range rules {
		if rule.Name == name {
			return rule.Sentence
		}
	}
	return ""
}
