package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

var errDown = errors.New("connection refused")

// An engine is a binding whose nodes hang, fail or serve. Keys begin with the name of their node and a colon.
type fakeEngine struct {
	mu       sync.Mutex
	hung     map[string]chan struct{} // closed when the node goes on
	fails    map[string]error
	slowKeys map[string]bool // keys that are not answered until their context ends
	deaf     bool            // contexts are ignored
	latency  time.Duration   // of an answer; 0 is a millisecond
	calls    atomic.Int64
	probes   atomic.Int64
	cuts     atomic.Int64
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{hung: map[string]chan struct{}{}, fails: map[string]error{}, slowKeys: map[string]bool{}}
}

func (e *fakeEngine) hang(node string) (resume func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := make(chan struct{})
	e.hung[node] = c
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.hung, node)
		close(c)
	}
}

func (e *fakeEngine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fails["n"] = err
}

func (e *fakeEngine) ask(ctx context.Context, key string) error {
	e.calls.Add(1)
	node, _, _ := strings.Cut(key, ":")
	e.mu.Lock()
	hung, err, deaf, latency := e.hung[node], e.fails[node], e.deaf, max(e.latency, time.Millisecond)
	if e.slowKeys[key] {
		hung = make(chan struct{})
	}
	e.mu.Unlock()
	switch {
	case hung == nil:
		select {
		case <-time.After(latency):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	case deaf:
		<-hung
		return err
	}
	select {
	case <-hung:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *fakeEngine) Do(ctx context.Context, key string, _ algorithm.Op, _ int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{Granted: 1}, e.ask(ctx, key)
}

func (e *fakeEngine) DoStamped(ctx context.Context, key string, _ algorithm.Op, _ int64) (algorithm.Verdict, int64, error) {
	return algorithm.Verdict{Granted: 1}, 5, e.ask(ctx, key)
}

func (e *fakeEngine) TakeMany(ctx context.Context, requests []store.KeyCost, _ int64, d []algorithm.Decision) ([]algorithm.Decision, error) {
	for _, r := range requests {
		if err := e.ask(ctx, r.Key); err != nil {
			return d, err
		}
		d = append(d, algorithm.Decision{Allowed: true, Remaining: r.Cost})
	}
	return d, nil
}

// breaker returns a breaker on the engine and a binding through it.
func (e *fakeEngine) breaker(t *testing.T, o store.BreakerOptions) (*store.Breaker, store.Binding) {
	t.Helper()
	o.Engine, o.Detach = "fake at 10.0.0.1", true
	o.Classify = func(err error) store.Cause {
		switch {
		case errors.Is(err, errDown):
			return store.CauseConnection
		case errors.Is(err, store.ErrUnnamed):
			return store.CauseCaller
		}
		return store.CauseRejection
	}
	o.Probe = func(ctx context.Context, c *store.Circuit, _ bool) error {
		e.probes.Add(1)
		return e.ask(ctx, c.Node()+":probe")
	}
	o.Cut = func(*store.Circuit) { e.cuts.Add(1) }
	b := store.NewBreaker(o)
	t.Cleanup(b.Close)
	return b, b.Bind(e, func(key string) *store.Circuit {
		node, _, _ := strings.Cut(key, ":")
		return b.Circuit(node)
	})
}

func take(b store.Binding, key string) error {
	_, err := b.Do(context.Background(), key, algorithm.Op{Cost: 1}, store.OwnClock)
	return err
}

// refused checks that a call is refused at once.
func refused(t *testing.T, b store.Binding, key string) {
	t.Helper()
	began := time.Now()
	err := take(b, key)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
		t.Errorf("%s: %v", key, err)
	}
	if !store.IsCircuitOpen(err) {
		t.Errorf("%v is not that of an open circuit", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error of a call that did not wait is that of a deadline: %v", err)
	}
	if d := time.Since(began); d != 0 {
		t.Errorf("%s is refused after %v", key, d)
	}
}

// A hung engine costs the callers of the first timeout only. The calls that wait when the circuit opens fail with them.
func TestBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		var states []string
		b.Notify(func(s store.BreakerState) { states = append(states, s.Position.String()) })
		if err := take(binding, "n:a"); err != nil {
			t.Fatal(err)
		}
		resume := e.hang("n")
		began := time.Now()
		var wg sync.WaitGroup
		var timeouts, cut atomic.Int64
		for i := range 1000 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				err := take(binding, fmt.Sprint("n:", i))
				switch {
				case errors.Is(err, store.ErrNothingDone):
					t.Error("a call that was sent is said to have done nothing: ", err)
				case errors.Is(err, store.ErrUnavailable):
					cut.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					timeouts.Add(1)
				default:
					t.Error(err)
				}
				if d := time.Since(began); d > time.Second+2*time.Millisecond {
					t.Errorf("call %d ended after %v", i, d)
				}
			})
		}
		wg.Wait()
		if timeouts.Load() != 3 || cut.Load() != 997 {
			t.Errorf("%d timeouts, %d calls cut", timeouts.Load(), cut.Load())
		}
		synctest.Wait()
		for range 100 {
			refused(t, binding, "n:a")
		}
		s := b.State()
		if s.Position == store.Closed || time.Since(s.Since) != 0 || !errors.Is(s.Cause, context.DeadlineExceeded) || e.cuts.Load() != 1 {
			t.Errorf("%+v, %d cuts", s, e.cuts.Load())
		}
		time.Sleep(time.Minute)
		calls, probes := e.calls.Load(), e.probes.Load()
		if probes < 40 || probes > 62 || calls != 1001+probes {
			t.Errorf("%d calls, %d probes", calls, probes)
		}
		resume()
		resumed := time.Now()
		for take(binding, "n:a") != nil {
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(resumed); d > time.Second {
			t.Errorf("recovery took %v", d)
		}
		synctest.Wait()
		if s := b.State(); s.Position != store.Closed || s.Cause != nil || fmt.Sprint(states) != "[open closed]" {
			t.Errorf("%+v, %v", s, states)
		}
		var c store.Counts
		if b.Count(&c); c.Timeouts != 1000 || c.Opened != 1 || c.Refused < 100 || c.Calls != 0 || c.Overflows != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// A client library that ignores contexts keeps no caller, and its goroutines are bounded.
func TestBreakerOnADeafLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		e.deaf = true
		b, binding := e.breaker(t, store.BreakerOptions{MaxCalls: 10, Timeout: 100 * time.Millisecond})
		resume := e.hang("n")
		var wg sync.WaitGroup
		for range 25 {
			wg.Go(func() {
				began := time.Now()
				err := take(binding, "n:a")
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOverloaded) {
					t.Error(err)
				}
				if strings.Contains(err.Error(), "calls wait for it") && store.IsCircuitOpen(err) {
					t.Error("too many calls are no open circuit: ", err)
				}
				if d := time.Since(began); d > 110*time.Millisecond {
					t.Errorf("a call took %v", d)
				}
			})
		}
		wg.Wait()
		var c store.Counts
		if b.Count(&c); c.Overflows != 15 || c.Calls != 10 || e.calls.Load() > 12 {
			t.Errorf("%+v, %d calls", c, e.calls.Load())
		}
		resume()
		synctest.Wait()
		if b.Count(&c); c.Calls != 0 {
			t.Errorf("%d calls are still counted", c.Calls)
		}
		b.Close()
	})
}

// A key that is slow while others are answered opens no circuit.
func TestBreakerIgnoresASlowKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.slowKeys["n:slow"] = true
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := take(binding, "n:slow"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		for range 100 {
			time.Sleep(20 * time.Millisecond)
			if err := take(binding, "n:quick"); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if s := b.State(); s.Position != store.Closed {
			t.Errorf("%+v", s)
		}
	})
}

// The engine's answers about one command, and errors before it was asked, open no circuit; lost connections do.
func TestBreakerCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		for _, err := range []error{errors.New("OOM"), store.ErrUnnamed} {
			e.fail(err)
			for range 10 {
				if got := take(binding, "n:a"); !errors.Is(got, err) {
					t.Error(got)
				}
			}
		}
		if b.State().Position != store.Closed {
			t.Errorf("%+v", b.State())
		}
		e.fail(errDown)
		for range 3 {
			if err := take(binding, "n:a"); !errors.Is(err, errDown) || errors.Is(err, store.ErrUnavailable) {
				t.Error(err)
			}
		}
		refused(t, binding, "n:a")
		if err := take(binding, "n:a"); !strings.HasPrefix(err.Error(), "fake at 10.0.0.1, node n: the store is unavailable since 2000-01-01T00:00:00Z: connection refused;") {
			t.Error(err)
		}
		var c store.Counts
		if b.Count(&c); c.Disconnections != 3 || c.Rejections != 10 || c.Refused != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// Callers whose own deadlines are short cause a check, and the circuit opens when the node does not answer it.
func TestBreakerOnImpatientCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.hang("n")
		began := time.Now()
		for b.State().Position == store.Closed && time.Since(began) < time.Minute {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err := binding.Do(ctx, "n:a", algorithm.Op{Cost: 1}, store.OwnClock)
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) {
				t.Error(err)
			}
			cancel()
		}
		if d := time.Since(began); d < time.Second || d > 1200*time.Millisecond {
			t.Errorf("the circuit opened after %v", d)
		}
	})
}

// Callers who give up before an engine that serves can answer open no circuit.
func TestBreakerOnCallersWhoGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.slowKeys["n:slow"] = true // slower than its callers wait
		began := time.Now()
		for time.Since(began) < time.Minute {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Microsecond)
			if _, err := binding.Do(ctx, "n:slow", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
			time.Sleep(10 * time.Millisecond)
		}
		var c store.Counts
		if b.Count(&c); c.Opened != 0 || b.State().Position != store.Closed {
			t.Errorf("the circuit opened %d times: %+v", c.Opened, b.State())
		}
		if probes := e.probes.Load(); probes == 0 || probes > 601 {
			t.Errorf("%d checks in a minute", probes)
		}
	})
}

// The timeout of several calls together, of which one has little left, opens no circuit of an engine that serves.
func TestBreakerOnTheRestOfATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.slowKeys["n:slow"] = true
		for range 20 {
			ctx, cancel := b.Within(t.Context(), time.Millisecond)
			if _, err := binding.Do(ctx, "n:slow", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		if s := b.State(); s.Position != store.Closed || !s.Since.IsZero() {
			t.Errorf("%+v", s)
		}
	})
}

// A node that hangs closes no other, and a batch is refused from its first request on.
func TestBreakerOfSeveralNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		e.hang("x")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _ = take(binding, "x:a") })
		}
		wg.Wait()
		refused(t, binding, "x:a")
		if err := take(binding, "y:a"); err != nil {
			t.Error(err)
		}
		if s := b.State(); s.Position == store.Closed || s.Node != "x" || len(b.States()) != 2 {
			t.Errorf("%+v", b.States())
		}
		batch := []store.KeyCost{{Key: "y:a", Cost: 1}, {Key: "z:a", Cost: 2}, {Key: "y:b", Cost: 3}, {Key: "x:a", Cost: 4}, {Key: "y:c", Cost: 5}}
		decisions, err := binding.(store.Batcher).TakeMany(t.Context(), batch, store.OwnClock, nil)
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNothingDone) || strings.Contains(err.Error(), "nothing") {
			t.Error(err)
		}
		if len(decisions) != 3 || decisions[0].Remaining != 1 || decisions[1].Remaining != 2 || decisions[2].Remaining != 3 {
			t.Errorf("%+v", decisions)
		}
		if decisions, err = binding.(store.Batcher).TakeMany(t.Context(), batch[:3], store.OwnClock, decisions); err != nil || len(decisions) != 6 {
			t.Errorf("%+v, %v", decisions, err)
		}
	})
}

// A store that is opened while its engine is down serves as soon as a probe succeeds.
func TestBreakerTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine()
		b, binding := e.breaker(t, store.BreakerOptions{})
		defer b.Close()
		wrong := errors.New("WRONGPASS")
		e.fail(wrong) // a rejection, which is no fitness
		b.Trip(b.Circuit("n"), errDown)
		refused(t, binding, "n:a")
		time.Sleep(10 * time.Second)
		refused(t, binding, "n:a")
		if s := b.State(); !errors.Is(s.Cause, wrong) || time.Since(s.Since) != 10*time.Second {
			t.Errorf("%+v", s)
		}
		e.fail(nil)
		time.Sleep(time.Second)
		if err := take(binding, "n:a"); err != nil {
			t.Error(err)
		}
	})
}

// A binding keeps its optional interfaces, and a panic of the engine's comes out.
func TestBreakerWraps(t *testing.T) {
	e := newFakeEngine()
	_, binding := e.breaker(t, store.BreakerOptions{})
	_, batches := binding.(store.Batcher)
	_, stamps := binding.(store.Stamper)
	_, inspects := binding.(store.Inspector)
	if !batches || !stamps || inspects || store.Unwrap(binding) != store.Binding(e) || store.Unwrap(e) != store.Binding(e) {
		t.Errorf("%v, %v, %v", batches, stamps, inspects)
	}
	b := store.NewBreaker(store.BreakerOptions{Engine: "fake", Detach: true})
	defer b.Close()
	for range 3 { // the first call runs apart
		func() {
			defer func() {
				if v := recover(); v == nil {
					t.Error("the panic is lost")
				}
			}()
			_, _ = store.Through(t.Context(), b.Circuit(""), func(context.Context) (int, error) { panic("boom") })
		}()
	}
	var c store.Counts
	if b.Count(&c); c.Calls != 0 {
		t.Errorf("%d calls are still counted", c.Calls)
	}
}

// A call whose context has ended does not reach the engine.
func TestBreakerOnAnEndedContext(t *testing.T) {
	e := newFakeEngine()
	_, binding := e.breaker(t, store.BreakerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := binding.Do(ctx, "n:a", algorithm.Op{Cost: 1}, store.OwnClock)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrNothingDone) || e.calls.Load() != 0 {
		t.Errorf("%v, %d calls", err, e.calls.Load())
	}
}
