package swap_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

const start = int64(1_700_000_000_000_000) // microseconds

// stopped returns an engine whose clock stands still until the test moves it.
func stopped() (*shelf, *int64) {
	engine, now := newShelf(), start
	engine.now = func() int64 { return now }
	return engine, &now
}

func do(t testing.TB, b store.Binding, op algorithm.Op, now int64) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(context.Background(), "k", op, now)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const name = "weir:1:{k}::10/1m"

// A state lives for as long as its debt, and is gone when it says nothing more.
func TestLives(t *testing.T) {
	engine, now := stopped()
	for _, c := range []struct {
		options swap.Options
		grace   time.Duration
	}{{}, {options: swap.Options{Grace: time.Minute}, grace: time.Minute}, {options: swap.Options{TrustClientTime: true}, grace: 24 * time.Hour}} {
		b := bind(t, swap.New(engine, c.options), "10/1m")
		do(t, b, algorithm.Op{Cost: 5}, store.OwnClock)
		*now += 12e6
		do(t, b, algorithm.Op{Cost: 1}, store.OwnClock)
		if got, want := engine.lives[name], 24*time.Second+c.grace; got != want {
			t.Errorf("%+v: a life of %v, want %v", c.options, got, want)
		}
		do(t, b, algorithm.Op{Kind: algorithm.Refund, Cost: 9}, store.OwnClock)
		if state, ok := engine.cells[name]; ok != (c.grace > 0) || engine.lives[name] != c.grace && ok {
			t.Errorf("%+v: after a refund of all there is %v with a life of %v, want %v", c.options, state, engine.lives[name], c.grace)
		}
		do(t, b, algorithm.Op{Cost: 5}, store.OwnClock)
		do(t, b, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
		if state, ok := engine.cells[name]; ok {
			t.Errorf("%+v: after a reset there is %v", c.options, state)
		}
	}
}

// Pitfall A7: what takes nothing makes no key.
func TestA7NothingTakenNothingKept(t *testing.T) {
	for _, text := range []string{"10/1m", "sliding-log 3/1m", "sliding-buckets 8/1m cells=4", "exponential 10/1m strict", "quota-reset 3/1m"} {
		engine, now := stopped()
		b := bind(t, swap.New(engine, swap.Options{}), text)
		for _, op := range []algorithm.Op{
			{}, {Kind: algorithm.TakeUpTo}, {Cost: 1 << 40}, {Kind: algorithm.Refund, Cost: 3}, {Kind: algorithm.Reset}, {Kind: algorithm.Cancel, Cost: 1},
		} {
			do(t, b, op, store.OwnClock)
		}
		if engine.swaps != 0 || len(engine.cells) != 0 {
			t.Errorf("%s: %d swaps, %v", text, engine.swaps, engine.cells)
		}
		do(t, b, algorithm.Op{Cost: 1}, store.OwnClock)
		for range 2 { // also when the state is fresh again
			do(t, b, algorithm.Op{}, store.OwnClock)
			do(t, b, algorithm.Op{Cost: 1 << 40}, store.OwnClock)
			*now += 3600e6 * 24
		}
		if engine.swaps != 1 || len(engine.cells) != 1 {
			t.Errorf("%s, taken once: %d swaps, %v", text, engine.swaps, engine.cells)
		}
	}
}

// Pitfall T4, with the clock that all share: it stepped back, and the state ahead of it becomes full debt, once.
func TestT4StoredFutureIsHealed(t *testing.T) {
	for _, c := range []struct {
		options swap.Options
		healed  int64
		reset   time.Duration
	}{
		{swap.Options{SharedClock: true}, 1, time.Minute},
		{swap.Options{}, 0, time.Hour + 30*time.Second},
		{swap.Options{SharedClock: true, TrustClientTime: true}, 0, time.Hour + 30*time.Second},
	} {
		engine, now := stopped()
		s := swap.New(engine, c.options)
		b := bind(t, s, "10/1m")
		do(t, b, algorithm.Op{Cost: 5}, store.OwnClock)
		*now -= 3600e6
		for range 2 {
			if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); v.Granted != -1 || v.Reset != c.reset {
				t.Errorf("%+v: %+v, want a denial and a reset after %v", c.options, v, c.reset)
			}
		}
		if got := s.Counts().Healed; got != c.healed {
			t.Errorf("%+v: %d states were healed, want %d", c.options, got, c.healed)
		}
		*now += 6e6
		if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); (v.Granted == 1) != (c.healed > 0) {
			t.Errorf("%+v: %+v after the interval of a unit", c.options, v)
		}
	}
}

func TestTimeOfTheCaller(t *testing.T) {
	engine, _ := stopped()
	own, trusting := swap.New(engine, swap.Options{}), swap.New(engine, swap.Options{TrustClientTime: true})
	if own.TrustsClientTime() || !trusting.TrustsClientTime() {
		t.Error("TrustsClientTime is not what the options say")
	}
	if _, err := bind(t, own, "10/1m").Do(t.Context(), "k", algorithm.Op{Cost: 1}, 5e9); !errors.Is(err, store.ErrClientTime) {
		t.Errorf("error %v, want ErrClientTime", err)
	}
	if _, _, err := bind(t, own, "10/1m").(store.Inspector).Inspect(t.Context(), "k", 5e9); !errors.Is(err, store.ErrClientTime) {
		t.Errorf("error %v of Inspect, want ErrClientTime", err)
	}
	b := bind(t, trusting, "10/1m")
	_, at, err := b.(store.Stamper).DoStamped(t.Context(), "k", algorithm.Op{Cost: 1}, 5_000_001_999)
	if err != nil || at != 5_000_001_000 {
		t.Errorf("took effect at %d, %v: want the time in whole microseconds", at, err)
	}
	// At its time, that take can be cancelled: End comes in nanoseconds.
	if v := do(t, b, algorithm.Op{Kind: algorithm.Cancel, Cost: 1, End: at + 6e9}, at+3e9); v.Granted != 1 || v.Remaining != 10 {
		t.Errorf("cancelled: %+v", v)
	}
	_, at, err = b.(store.Stamper).DoStamped(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	if err != nil || at != start*1000 {
		t.Errorf("took effect at %d, %v: want the engine's time", at, err)
	}
}

func TestInspect(t *testing.T) {
	engine, _ := stopped()
	b := bind(t, swap.New(engine, swap.Options{}), "10/1m")
	inspector := b.(store.Inspector)
	if state, at, err := inspector.Inspect(t.Context(), "k", store.OwnClock); len(state) != 0 || at != start || err != nil {
		t.Errorf("a fresh key: %v at %d, %v", state, at, err)
	}
	do(t, b, algorithm.Op{Cost: 5}, store.OwnClock)
	state, at, err := inspector.Inspect(t.Context(), "k", store.OwnClock)
	if len(state) != 1 || state[0] != start+30e6 || at != start || err != nil {
		t.Errorf("%v at %d, %v: want 30 s of debt", state, at, err)
	}
	state[0] = 0
	if v := do(t, b, algorithm.Op{}, store.OwnClock); v.Remaining != 5 {
		t.Errorf("the state that was shown is that of the engine: %+v", v)
	}
	if tick := inspector.Program().Tick(); tick != time.Microsecond {
		t.Errorf("ticks of %v", tick)
	}
}

func TestTimeDebtOfSeveralLimits(t *testing.T) {
	engine, _ := stopped()
	s := swap.New(engine, swap.Options{SharedClock: true})
	shared := func(text string) store.Binding {
		b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text), TimeDebt: true})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	do(t, shared("10/1h"), algorithm.Op{Cost: 10}, store.OwnClock)
	if v := do(t, shared("10/1m"), algorithm.Op{Cost: 1}, store.OwnClock); v.Granted != -1 || v.Reset != time.Hour {
		t.Errorf("%+v: want the hour of the other limit's debt", v)
	}
}

func TestBindRefuses(t *testing.T) {
	var limit *algorithm.LimitError
	s := swap.New(newShelf(), swap.Options{})
	if _, err := s.Bind(store.Spec{Limit: algorithm.Limit{Algorithm: algorithm.FixedWindow, Count: 5, Period: 1500}}); !errors.As(err, &limit) {
		t.Errorf("a period of 1.5 µs: %v", err)
	}
	if _, err := swap.New(newShelf(), swap.Options{Prefix: "my app"}).Bind(store.Spec{Limit: algorithm.MustParseLimit("10/1m")}); err == nil {
		t.Error("a prefix with a space was accepted")
	}
}

// A clerk is a shelf that decides takes of one unit itself.
type clerk struct {
	*shelf
	asked int
	err   error
}

func (c *clerk) Decide(_ context.Context, r *swap.Request) (done bool, err error) {
	s := &r.Steps[0]
	if c.asked++; c.err != nil || len(r.Steps) > 1 || s.Op.Cost != 1 || s.Op.Kind != algorithm.Take {
		return false, c.err
	}
	r.At = c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.cells[s.Name]; !old.Empty() && old.Head != s.Limit.Head {
		return false, nil
	}
	state, result := s.Limit.Program.Apply(c.cells[s.Name].State, s.Op, s.Time(r.At))
	c.cells[s.Name] = swap.Record{Head: s.Limit.Head, State: state}
	s.Verdict = result.Verdict()
	return true, nil
}

func TestDecider(t *testing.T) {
	engine, _ := stopped()
	c := &clerk{shelf: engine}
	s := swap.New(c, swap.Options{})
	b := bind(t, s, "10/1m")
	if v, at, err := b.(store.Stamper).DoStamped(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 9 || at != start*1000 || err != nil {
		t.Errorf("%+v at %d, %v", v, at, err)
	}
	if c.asked != 1 || engine.loads != 0 {
		t.Errorf("asked %d times, loaded %d times: want only to be asked", c.asked, engine.loads)
	}
	if v := do(t, b, algorithm.Op{Cost: 2}, store.OwnClock); v.Remaining != 7 || c.asked != 2 || engine.swaps != 1 {
		t.Errorf("what the engine does not decide: %+v, asked %d times, %d swaps", v, c.asked, engine.swaps)
	}
	if state, _, err := b.(store.Inspector).Inspect(t.Context(), "k", store.OwnClock); len(state) != 1 || err != nil || c.asked != 2 {
		t.Errorf("inspected: %v, %v, asked %d times", state, err, c.asked)
	}
	c.err = errors.New("broken")
	if _, err := take(b, "k", 1); !errors.Is(err, c.err) || errors.Is(err, swap.ErrNothingDone) {
		t.Errorf("error %v: want one that leaves open what happened", err)
	}
}

// What others have written under a name is no state: it is an error for who asks, and for nobody else, until a reset.
func TestForeignStates(t *testing.T) {
	for text, state := range map[string][]int64{
		"fixed-window 10/1h": {1}, "refill-bucket 10/1h": {1}, "7/1h": {start, -1}, "sliding-buckets 10/1h": {1, 2, 3},
		"exponential 10/1h": {start, 0x7ff0000000000000}, "hybrid 10/1h": {5, 5, 5}, "sliding-log 10/1h": {1, 2, 3}, "10/1h": {1, 2},
	} {
		engine, _ := stopped()
		b := bind(t, swap.New(engine, swap.Options{SharedClock: true}), text)
		do(t, b, algorithm.Op{Cost: 1}, store.OwnClock)
		for name := range engine.cells {
			engine.cells[name] = swap.Record{State: state}
		}
		for _, op := range []algorithm.Op{{}, {Cost: 1}, {Kind: algorithm.TakeUpTo, Cost: 1}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Cancel, Cost: 1}} {
			if v, err := b.Do(context.Background(), "k", op, store.OwnClock); !errors.Is(err, swap.ErrNothingDone) {
				t.Errorf("%s, state %v: %+v, %v; want an error that says that nothing was done", text, state, v, err)
			} else if k, ok := errors.AsType[*store.KeyError](err); !ok || !strings.Contains(k.Key, "{k}") || store.IsFailure(t.Context(), err) {
				t.Errorf("%s, state %v: %v; want a KeyError, which is no failure of the store", text, state, err)
			}
		}
		do(t, b, algorithm.Op{Kind: algorithm.Reset}, store.OwnClock)
		if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 9 && v.Remaining != 6 {
			t.Errorf("%s: after the reset %+v", text, v)
		}
	}
}

// A peek and a look see a state that is too far ahead healed, and leave it.
func TestPeekHealsItsViewOnly(t *testing.T) {
	engine, _ := stopped()
	b := bind(t, swap.New(engine, swap.Options{SharedClock: true}), "10/1m")
	do(t, b, algorithm.Op{Cost: 1}, store.OwnClock)
	engine.cells[name] = swap.Record{State: []int64{start + 3600e6}}
	swaps := engine.swaps
	if v := do(t, b, algorithm.Op{}, store.OwnClock); v.Reset != time.Minute {
		t.Errorf("a peek at a state that is an hour ahead: %+v; want full debt, a minute", v)
	}
	if state, _, err := b.(store.Inspector).Inspect(context.Background(), "k", store.OwnClock); err != nil || state[0] != start+60e6 {
		t.Errorf("a look: %v, %v", state, err)
	}
	if engine.swaps != swaps || engine.cells[name].State[0] != start+3600e6 {
		t.Errorf("%d swaps by those that only look; the state is %v", engine.swaps-swaps, engine.cells[name])
	}
	do(t, b, algorithm.Op{Cost: 1}, store.OwnClock) // denied
	if engine.cells[name].State[0] != start+60e6 {
		t.Errorf("after a take the state is %v, want it healed", engine.cells[name])
	}
}
