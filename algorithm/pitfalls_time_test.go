package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// The pitfalls of time that a transition has by itself. The limiter's are in pitfalls_test.go at the root of the module.

const sec = int64(time.Second)

// A player applies operations to one key of a limit, and fails the test when an answer is not the one wanted.
type player struct {
	t       *testing.T
	program *algorithm.Program
	state   []int64
}

func play(t *testing.T, text string) *player {
	t.Helper()
	return &player{t: t, program: compile(t, algorithm.MustParseLimit(text))}
}

func (p *player) take(cost, now int64) algorithm.Result {
	return p.apply(algorithm.Op{Cost: cost}, now)
}

func (p *player) apply(op algorithm.Op, now int64) (r algorithm.Result) {
	p.state, r = p.program.Apply(p.state, op, now)
	return r
}

// ones takes single units until one is denied, and wants this many to pass.
func (p *player) ones(want int, now int64) {
	p.t.Helper()
	got := 0
	for got <= want && p.take(1, now).Allowed {
		got++
	}
	if got != want {
		p.t.Errorf("%v: %d units pass at %v, want %d", p.program.Limit(), got, time.Duration(now), want)
	}
}

// T1: time that jumps back and forth between two instants admits no more than time that passed once.
func TestPitfallT1RewindMintsNothing(t *testing.T) {
	for _, start := range []int64{0, 10 * sec} {
		p, admitted := play(t, "1/1s burst=10"), 0
		for i := range int64(1000) {
			if p.take(1, (start+i*10*sec)%(20*sec)).Allowed {
				admitted++
			}
		}
		if admitted > 20 || admitted < 10 {
			t.Errorf("starting at %v, %d admitted; want 10 to 20", time.Duration(start), admitted)
		}
	}
}

// T3: a clock set back an hour. The state is kept, gives nothing away, and Heal, for a store whose one clock
// it was, brings the wait down to what full debt takes. (A store in memory counts time by a clock that is never set.)
func TestPitfallT3WallStepBack(t *testing.T) {
	p := play(t, "10/1s")
	now := 1_790_000_000 * sec
	if r := p.take(5, now); !r.Allowed || r.Remaining != 5 {
		t.Fatalf("%+v", r)
	}
	back := now - 3600*sec
	if r := p.take(1, back); r.Allowed || r.Remaining != 0 {
		t.Errorf("an hour back: %+v", r)
	}
	if !p.program.Heal(p.state, back) {
		t.Fatal("a state an hour ahead is not healed")
	}
	if r := p.take(1, back); r.Allowed || r.RetryAfter != 100*time.Millisecond {
		t.Errorf("healed: %+v; want a wait of 100ms", r)
	}
	p.ones(1, back+sec/10)
}

// T4: a stored state an hour beyond what the limit can have made, in every algorithm: full debt, reported so that a
// store can count it, and the key lives again within its own reset time.
func TestPitfallT4StoredFuture(t *testing.T) {
	for _, text := range eachAlgorithm("2/10s") {
		p := play(t, text)
		if p.program.Limit().Unit != "" {
			continue // see TestCalendarOfAStoredFuture
		}
		const future, now = 1_790_003_600 * int64(time.Second), 1_790_000_000 * int64(time.Second)
		capacity := p.program.Limit().Capacity()
		p.take(capacity, future)
		if r := p.take(1, now); r.Allowed || r.RetryAfter < time.Hour-10*time.Second {
			t.Fatalf("%s: not an hour ahead: %+v", text, r)
		}
		if !p.program.Heal(p.state, now) {
			t.Errorf("%s: not healed", text)
		}
		if p.program.Heal(p.state, now) {
			t.Errorf("%s: healed twice", text)
		}
		r := p.take(1, now)
		if r.Allowed || r.Remaining != 0 || r.ResetAfter > 30*time.Second {
			t.Errorf("%s: healed to %+v", text, r)
		}
		if r = p.take(1, now+int64(r.RetryAfter)); !r.Allowed {
			t.Errorf("%s: still denied after its wait: %+v", text, r)
		}
	}
}

// eachAlgorithm returns a limit of this rate for every algorithm; a calendar's is of a year or a day.
func eachAlgorithm(rate string) (texts []string) {
	l := algorithm.MustParseLimit(rate)
	for _, a := range algorithm.All() {
		texts = append(texts, limitAt(a, l.Count, l.Period).String())
	}
	return texts
}

// T5: the epoch is a time like any other; no zero in a state means "never".
func TestPitfallT5EpochZero(t *testing.T) {
	for _, text := range eachAlgorithm("2/2s") {
		for _, now := range []int64{0, -1, 1} {
			p := play(t, text)
			p.ones(int(p.program.Limit().Capacity()), now)
		}
	}
}

// T6: after 420 days and after three years a drained key is full, and no fuller.
func TestPitfallT6LongIdle(t *testing.T) {
	for _, text := range eachAlgorithm("3/1m") {
		for _, idle := range []time.Duration{420 * day, 3 * 365 * day} {
			p, now := play(t, text), 1_790_000_000*sec
			capacity := int(p.program.Limit().Capacity())
			p.ones(capacity, now)
			p.ones(capacity, now+int64(idle))
		}
	}
}

// T8: the burst is exact, and so is the instant at which the next unit is there.
func TestPitfallT8ExactBurst(t *testing.T) {
	for _, name := range []string{"token-bucket", "gcra", "leaky-bucket"} {
		p := play(t, name+" 10/1s burst=4")
		p.ones(4, 0)
		p.ones(0, sec/10-1)
		p.ones(1, sec/10)

		p = play(t, name+" 1200/1m")
		if r := p.take(1200, 0); !r.Allowed {
			t.Fatalf("%+v", r)
		}
		const batches = 2 * 5 * int64(time.Minute) / 1200
		for i := range 2 {
			if r := p.take(5, batches); !r.Allowed {
				t.Errorf("%s: batch %d: %+v", name, i, r)
			}
		}
		if r := p.take(5, batches); r.Allowed || r.RetryAfter != 250*time.Millisecond {
			t.Errorf("%s: third batch: %+v", name, r)
		}
	}
}
