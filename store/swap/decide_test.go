package swap_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A scribe is a shelf that decides requests on records of their limits, and returns the others as it
// found them.
type scribe struct {
	*shelf
	asked, most int // requests; and the most steps of one
	refuse      string
}

func (c *scribe) Compile(spec store.Spec, p *algorithm.Program) (any, error) {
	if spec.Limit.String() == c.refuse {
		return nil, &algorithm.LimitError{Field: "count", Value: "1", Accept: "more"}
	}
	return "compiled " + p.Head(), nil
}

func (c *scribe) Decide(ctx context.Context, r *swap.Request) (done bool, err error) {
	c.asked++
	c.most = max(c.most, len(r.Steps))
	if err := c.wait(ctx); err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.At = c.now()
	plain := true
	cells := make([]swap.Cell, len(r.Steps))
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Limit.Compiled != "compiled "+s.Limit.Program.Head() {
			return false, errors.New("the limit is not compiled")
		}
		old := c.cells[s.Name]
		cells[i] = swap.Cell{Record: copied(old), Token: copied(old), Now: r.At}
		plain = plain && (old.Empty() || old.Head == s.Limit.Head || s.Op.Kind == algorithm.Reset)
	}
	if !plain || r.Mode != swap.Each {
		r.Found = cells
		return false, nil
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		state, result := s.Limit.Program.Apply(copied(c.cells[s.Name]).State, s.Op, s.Time(r.At))
		if c.cells[s.Name] = (swap.Record{Head: s.Limit.Head, State: state}); len(state) == 0 {
			delete(c.cells, s.Name)
		}
		s.Verdict = result.Verdict()
	}
	return true, nil
}

func inDirect(o swap.Options) (*scribe, *swap.Store) {
	c := &scribe{shelf: newShelf(), refuse: "1/1s"}
	o.Direct = true
	return c, swap.New(c, o)
}

// A direct Decider gets requests at once. The cells that it returns with a request that it leaves alone
// are not loaded again, and later requests on such a name go to the loop at once, until its record is the
// Decider's again.
func TestDirectDecider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := inDirect(swap.Options{})
		b := bindNamed(t, s, "10/1m")
		for i, step := range []struct {
			op                  algorithm.Op
			asked, loads, swaps int
		}{
			{algorithm.Op{Cost: 1}, 1, 0, 0},
			{algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: int64(time.Hour)}, 0, 1, 1},
			{algorithm.Op{Cost: 1}, 0, 1, 1},
			{algorithm.Op{}, 0, 1, 0},
			{algorithm.Op{Kind: algorithm.Commit, ID: 1, Cost: 1}, 0, 1, 1},
			{algorithm.Op{Cost: 1}, 1, 0, 0}, // plain again
			{algorithm.Op{Kind: algorithm.Reserve, ID: 2, Cost: 1, Life: int64(time.Hour)}, 0, 1, 1},
			{algorithm.Op{Kind: algorithm.Reset}, 1, 0, 0},
			{algorithm.Op{Cost: 1}, 1, 0, 0},
			{algorithm.Op{Kind: algorithm.Reserve, ID: 3, Cost: 1, Life: int64(time.Hour)}, 0, 1, 1},
		} {
			c.asked, c.loads, c.swaps = 0, 0, 0
			do(t, b, step.op, store.OwnClock)
			if c.asked != step.asked || c.loads != step.loads || c.swaps != step.swaps {
				t.Errorf("step %d: asked %d times, %d loads, %d swaps, want %+v", i, c.asked, c.loads, c.swaps, step)
			}
		}
		time.Sleep(2 * time.Second) // until the name is forgotten
		c.asked, c.loads, c.swaps = 0, 0, 0
		if v := do(t, b, algorithm.Op{Cost: 1}, store.OwnClock); v.Remaining != 7 || c.asked != 1 || c.loads != 0 || c.swaps != 1 {
			t.Errorf("%+v: asked %d times, %d loads, %d swaps; want the cell that was found", v, c.asked, c.loads, c.swaps)
		}
		if state, _, err := b.(store.Inspector).Inspect(t.Context(), "other", store.OwnClock); err != nil || len(state) > 0 || c.asked != 1 {
			t.Errorf("inspected: %v, %v, asked %d times", state, err, c.asked)
		}
	})
}

// A batch goes to a direct Decider in parts of 64, and in their order for one key.
func TestBatches(t *testing.T) {
	c, s := inDirect(swap.Options{})
	b := bind(t, s, "100/1h").(store.Batcher)
	requests := make([]store.KeyCost, 150)
	for i := range requests {
		requests[i] = store.KeyCost{Key: "k", Cost: 1}
	}
	decisions, err := b.TakeMany(t.Context(), requests, store.OwnClock, nil)
	if err != nil || len(decisions) != 150 || c.asked != 3 || c.most != 64 {
		t.Fatalf("%d decisions, %v, in %d requests of up to %d", len(decisions), err, c.asked, c.most)
	}
	for i, d := range decisions {
		if d.Allowed != (i < 100) || d.Remaining != int64(max(0, 99-i)) || d.Limit != 100 {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if _, err := b.TakeMany(t.Context(), requests, 5e9, nil); !errors.Is(err, store.ErrClientTime) {
		t.Errorf("error %v, want ErrClientTime", err)
	}
	if _, many := bind(t, swap.New(newShelf(), swap.Options{}), "100/1h").(store.Batcher); many {
		t.Error("a binding of an engine that decides nothing is a Batcher")
	}
}

// An error of the Decider leaves the effect open, unless it states the contrary, and nothing is sent again.
func TestErrorsOfADecider(t *testing.T) {
	c, s := inDirect(swap.Options{Timeout: time.Second})
	b := bind(t, s, "10/1h")
	c.delay = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := b.Do(ctx, "k", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrNothingDone) {
		t.Errorf("error %v", err)
	}
	if c.asked != 1 || c.loads != 0 {
		t.Errorf("asked %d times, %d loads; want 1, 0", c.asked, c.loads)
	}
}

// A limit that the engine can't keep is refused when it is bound.
func TestCompilerRefuses(t *testing.T) {
	_, s := inDirect(swap.Options{})
	_, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("1/1s")})
	if l, ok := errors.AsType[*algorithm.LimitError](err); !ok || l.Field != "count" {
		t.Errorf("error %v, want a LimitError", err)
	}
}

// A breaker guards single requests and joint takes.
func TestBreakerAroundTheLoop(t *testing.T) {
	broken := errors.New("broken")
	b := store.NewBreaker(store.BreakerOptions{
		Engine: "shelf", Classify: func(error) store.Cause { return store.CauseConnection },
		Probe: func(context.Context, *store.Circuit, bool) error { return broken },
	})
	circuit := b.Circuit("")
	engine := newShelf()
	s := swap.New(engine, swap.Options{Engine: "shelf", Breaker: b, Circuit: func(string) *store.Circuit { return circuit }})
	engine.before = func(string) error { return broken }
	for range 2 {
		if _, err := take(bind(t, s, "10/1h"), "k", 1); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
	parts := []store.Part{partOf(t, s, "10/1h", "a"), partOf(t, s, "10/1h", "b")}
	if _, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil); !store.IsCircuitOpen(err) {
		t.Errorf("error %v, want that of an open circuit", err)
	}
	if c := s.Counts(); c.Failures != 3 || c.Disconnections != 3 || c.Opened != 1 || c.Refused != 1 {
		t.Errorf("%+v", c)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
