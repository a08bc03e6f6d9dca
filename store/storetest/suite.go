package storetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// seedVariable is the environment's name for a seed to repeat.
const seedVariable = "WEIR_STORETEST_SEED"

// A suite is one run of the rules.
type suite struct {
	harness Harness
	tick    time.Duration
	seed    uint64
	run     string // part of every name, so that runs on one engine have nothing in common
	crew    *crew
}

func newSuite(h Harness) *suite {
	s := &suite{harness: h, tick: h.Tick, seed: rand.Uint64(), run: strconv.FormatUint(rand.Uint64(), 36), crew: &crew{process: h.Process}}
	if s.tick == 0 {
		s.tick = time.Microsecond
	}
	if seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64); err == nil {
		s.seed = seed
	}
	return s
}

// hold holds the store to one rule.
func (s *suite) hold(t testing.TB, rule Rule) {
	t.Helper()
	k := &check{TB: t, suite: s, rule: rule.Name}
	defer func() {
		if t.Failed() {
			t.Logf("the store breaks this rule: %s (%s=%d repeats the random choices)", rule.Sentence, seedVariable, s.seed)
		}
	}()
	defer k.stopped()
	rule.check(k)
}

// A check is one rule that is held against a store. Its Fatalf may be called in the goroutines of each.
type check struct {
	testing.TB
	*suite
	rule  string
	names atomic.Int64
}

// stop is what Fatalf ends a goroutine with.
type stop struct{}

// Fatalf fails the check and ends the goroutine's part of it.
func (k *check) Fatalf(format string, args ...any) {
	k.Helper()
	k.Errorf(format, args...)
	panic(stop{})
}

// stopped is deferred around what may call Fatalf.
func (k *check) stopped() {
	if r := recover(); r != nil {
		if _, ok := r.(stop); !ok {
			panic(r)
		}
	}
}

// atOnce is how many goroutines ask the store at a time, where their number is not what is tested.
const atOnce = 32

// each calls f with 0 to n−1, several at a time. It does not begin another when one failed.
func (k *check) each(n int, f func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		if k.Failed() {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			defer k.stopped()
			f(i)
		})
	}
	wg.Wait()
}

// together calls f n times, all at one time.
func (k *check) together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			defer k.stopped()
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// random returns a source that depends on the seed and on what it is for.
func (k *check) random(purpose ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, k.rule)
	fmt.Fprintln(h, purpose...)
	return rand.New(rand.NewPCG(k.seed, h.Sum64()))
}

// name returns a name that nothing else has.
func (k *check) name() string {
	return fmt.Sprintf("%s %s %d", k.run, k.rule, k.names.Add(1))
}

// trusting opens a store that trusts the caller's time, asking opens one that decides by its own clock.
func (k *check) trusting() store.Store { return k.harness.Open(k.TB, Options{TrustClientTime: true}) }
func (k *check) asking() store.Store   { return k.harness.Open(k.TB, Options{}) }

// rivals opens stores that have one engine, of which each races the others; one if they would not be shared.
func (k *check) rivals(o Options) []store.Store {
	all := []store.Store{k.harness.Open(k.TB, o)}
	for k.shared() && len(all) < 3 {
		all = append(all, k.harness.Open(k.TB, o))
	}
	return all
}

// shared reports whether stores that are opened have one engine.
func (k *check) shared() bool { return k.harness.Process != "" }

// refused returns why a limit is refused.
func (k *check) refused(limit algorithm.Limit) string {
	if _, err := algorithm.Compile(limit, k.tick); err != nil {
		return err.Error()
	}
	if k.harness.Refuses == nil {
		return ""
	}
	return k.harness.Refuses(limit)
}

// accepted returns an iterator over the limits of a list, with their indexes, without those that the
// store refuses.
func (k *check) accepted(texts []string) iter.Seq2[int, algorithm.Limit] {
	return func(yield func(int, algorithm.Limit) bool) {
		for i, text := range texts {
			if limit := algorithm.MustParseLimit(text); k.refused(limit) == "" && !yield(i, limit) {
				return
			}
		}
	}
}

// byBothClocks calls f for each limit by the clock of the caller and by that of the store, with stores
// that race each other. With -short each limit has one of the two clocks.
func (k *check) byBothClocks(texts []string, f func(o Options, stores []store.Store, i int, limit algorithm.Limit)) {
	for _, o := range []Options{{}, {TrustClientTime: true}} {
		stores := k.rivals(o)
		for i, limit := range k.accepted(texts) {
			if !testing.Short() || i/2%2 == 0 != o.TrustClientTime {
				f(o, stores, i, limit)
			}
		}
	}
}

// A bound is a limit on a store, with what its verdicts mean.
type bound struct {
	*check
	limit   algorithm.Limit
	spec    store.Spec
	program *algorithm.Program
	binding store.Binding
	tag     string // what its keys begin with, which nothing else does, if it has no name
}

// bind prepares a limit under a name of its own. It returns nil if the store refuses the limit.
func (k *check) bind(s store.Store, text string) *bound {
	k.Helper()
	for _, limit := range k.accepted([]string{text}) {
		return k.bindSpec(s, store.Spec{Limit: limit, Name: k.name()})
	}
	return nil
}

// bindUnnamed prepares a limit without a name, with keys of its own.
func (k *check) bindUnnamed(s store.Store, text string) *bound {
	k.Helper()
	for _, limit := range k.accepted([]string{text}) {
		b := k.bindSpec(s, store.Spec{Limit: limit})
		b.tag = k.name() + " "
		return b
	}
	return nil
}

// mustBind is bind, or skips the rule.
func (k *check) mustBind(s store.Store, text string) *bound {
	k.Helper()
	b := k.bind(s, text)
	if b == nil {
		k.Skipf("the store refuses %s", text)
	}
	return b
}

// bindOn prepares several limits under the name, if there is one, on the stores in turn.
func (b *bound) bindOn(stores []store.Store, texts ...string) (all []*bound) {
	b.Helper()
	for i, s := range stores {
		limit := algorithm.MustParseLimit(texts[i%len(texts)])
		other := b.bindSpec(s, store.Spec{Limit: limit, Name: b.spec.Name})
		other.tag = b.tag
		all = append(all, other)
	}
	return all
}

// another prepares another limit for the name.
func (b *bound) another(s store.Store, text string) *bound {
	b.Helper()
	return b.bindOn([]store.Store{s}, text)[0]
}

// bindSpec prepares a limit that is not refused.
func (k *check) bindSpec(s store.Store, spec store.Spec) *bound {
	k.Helper()
	compile := algorithm.Compile
	if spec.TimeDebt {
		compile = algorithm.CompileShared
	}
	program, err := compile(spec.Limit, k.tick)
	if err != nil {
		k.Fatalf("%v: %v", spec.Limit, err)
	}
	binding, err := s.Bind(spec)
	if err != nil {
		k.Fatalf("%v under the name %.100q: %v", spec.Limit, spec.Name, err)
	}
	return &bound{check: k, limit: spec.Limit.Canonical(), spec: spec, program: program, binding: binding}
}

// bindNamed prepares limits, each under a name of its own; those that are refused are not among them.
func (k *check) bindNamed(s store.Store, texts []string) (all []*bound) {
	k.Helper()
	for _, text := range texts {
		if b := k.bind(s, text); b != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		k.Fatalf("the store refuses all of %q", texts)
	}
	return all
}

// bindAll prepares limits, each under a name and without one; with -short each under a name or
// without one, the first under a name. Those that are refused are not among them.
func (k *check) bindAll(s store.Store, texts []string) (all []*bound) {
	k.Helper()
	all = k.bindNamed(s, texts)
	random := k.random("names")
	for i, b := range all {
		switch unnamed := k.bindUnnamed(s, b.limit.String()); {
		case !testing.Short():
			all = append(all, unnamed)
		case i > 0 && random.IntN(2) == 0:
			all[i] = unnamed
		}
	}
	return all
}

// do carries out an operation that must not fail.
func (b *bound) do(key string, op algorithm.Op, now int64) algorithm.Verdict {
	b.Helper()
	v, err := b.ask(context.Background(), key, op, now)
	if err != nil {
		b.Fatalf("%v: %s on %.60q: %v", b.limit, describe(op), key, err)
	}
	return v
}

// ask carries out an operation.
func (b *bound) ask(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	return b.binding.Do(ctx, b.tag+key, op, now)
}

func (b *bound) take(key string, cost, now int64) algorithm.Verdict {
	b.Helper()
	return b.do(key, algorithm.Op{Cost: cost}, now)
}

func (b *bound) peek(key string, now int64) algorithm.Verdict {
	b.Helper()
	return b.take(key, 0, now)
}

// wantf fails unless a verdict is as expected.
func (b *bound) wantf(got, want algorithm.Verdict, format string, args ...any) {
	b.Helper()
	if got != want {
		b.Fatalf("%v: %s: got %s, want %s", b.limit, fmt.Sprintf(format, args...), show(got), show(want))
	}
}

// ticks converts nanoseconds.
func (k *check) ticks(ns int64) int64 {
	t := ns / int64(k.tick)
	if ns%int64(k.tick) < 0 {
		t--
	}
	return t
}

// inTicks returns an operation with its times in ticks.
func (k *check) inTicks(op algorithm.Op) algorithm.Op {
	op.End = k.ticks(op.End)
	op.Life = (op.Life + int64(k.tick) - 1) / int64(k.tick)
	return op
}

// expect returns what the account of a fresh key says about operations, one after another; about a look if there are none.
func (b *bound) expect(now int64, ops ...algorithm.Op) (v algorithm.Verdict) {
	if len(ops) == 0 {
		ops = []algorithm.Op{{}}
	}
	var a algorithm.Account
	for _, op := range ops {
		var r algorithm.Result
		a, r = a.Apply(b.program, b.inTicks(op), b.ticks(now))
		v = r.Verdict()
	}
	return v
}

// describe tells an operation.
func describe(op algorithm.Op) string {
	kind := [...]string{"take", "take up to", "refund", "reset", "cancel", "renew", "reserve", "commit"}[op.Kind]
	switch op.Kind {
	case algorithm.Cancel, algorithm.Renew:
		return fmt.Sprintf("%s %d of the end %d", kind, op.Cost, op.End)
	case algorithm.Reserve:
		return fmt.Sprintf("%s %d as %d for %v", kind, op.Cost, op.ID, time.Duration(op.Life))
	case algorithm.Commit:
		if op.Late {
			kind = "late commit"
		}
		return fmt.Sprintf("%s %d as %d", kind, op.Cost, op.ID)
	}
	return fmt.Sprintf("%s %d", kind, op.Cost)
}

// show tells a verdict.
func show(v algorithm.Verdict) string {
	wait := v.Wait.String()
	if v.Wait == algorithm.Never {
		wait = "never"
	}
	return fmt.Sprintf("{granted %d, remaining %d, wait %s, reset %v}", v.Granted, v.Remaining, wait, v.Reset)
}
