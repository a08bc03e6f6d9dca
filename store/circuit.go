package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
)

// A Circuit is the part of a Breaker for one node of an engine.
type Circuit struct {
	breaker *Breaker
	node    string
	refused atomic.Pointer[refusal] // not nil while the circuit is open

	mu       sync.Mutex
	state    BreakerState
	calls    int       // in flight, those included that returned before their library did
	waiting  call      // the head of a ring of the calls that wait for an answer
	begun    uint64    // calls that have begun
	answered uint64    // the latest call, by its number, that was answered
	failures int       // calls in a row that failed and began after the one that was answered
	checked  time.Time // the begin of the last check, see doubt
	unproven bool      // a probe must find the node fit in all respects
	suspect  bool      // the last call failed, or there was none: the library may have to connect
	doubted  bool      // a check is in progress
	used     bool
}

// A call is one operation of a caller's that waits for a node.
type call struct {
	ctx     context.Context //nolint:containedctx // of this call
	cancel  context.CancelFunc
	circuit *Circuit
	began   time.Time
	number  uint64
	kind    CallKind
	op      algorithm.Op
	cut     bool // the circuit opened while it waited
	apart   bool // it runs in a goroutine of its own, and may return before that ends

	running    bool // that goroutine has not ended
	prev, next *call
}

// Node returns the name that the circuit was made with.
func (c *Circuit) Node() string { return c.node }

func (c *Circuit) current() BreakerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.state
	s.Node = c.node
	return s
}

// enter begins a call, or refuses it. exit must follow.
func (c *Circuit) enter(parent context.Context) (*call, error) {
	b := c.breaker
	if err := parent.Err(); err != nil {
		return nil, fmt.Errorf("%s: the caller gave up: %w; %w", b.options.Engine, err, ErrNothingDone)
	}
	if r := c.refused.Load(); r != nil {
		b.counts.refused.Add(1)
		return nil, r
	}
	p := &call{circuit: c, began: time.Now()}
	p.ctx, p.cancel = context.WithDeadlineCause(parent, p.began.Add(b.options.Timeout), b.timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.refused.Load(); r != nil {
		p.cancel()
		b.counts.refused.Add(1)
		return nil, r
	}
	if c.calls >= b.options.MaxCalls {
		p.cancel()
		b.counts.overflows.Add(1)
		return nil, &refusal{why: ErrOverloaded, text: fmt.Sprintf("%s: %v: %d calls wait for it", c.engine(), ErrOverloaded, c.calls)}
	}
	c.calls++
	c.begun++
	p.number, p.apart = c.begun, b.options.Detach && (c.suspect || !c.used)
	p.running = p.apart
	c.link(p)
	return p, nil
}

func (c *Circuit) link(p *call) {
	if c.waiting.next == nil {
		c.waiting.next, c.waiting.prev = &c.waiting, &c.waiting
	}
	p.next, p.prev = &c.waiting, c.waiting.prev
	p.prev.next, p.next.prev = p, p
}

func (p *call) unlink() { p.prev.next, p.next.prev = p.next, p.prev }

// ended is called when the goroutine of a call apart ends.
func (p *call) ended() {
	c := p.circuit
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.running = false; p.next == nil { // the call has returned before
		c.calls--
	}
}

// cause returns why a call failed, and whether its context ended with the breaker's timeout.
func (p *call) cause(err error) (cause Cause, timedOut bool) {
	switch {
	case err == nil:
		return CauseCaller, false
	case p.ctx.Err() == nil:
		return p.circuit.breaker.classify(err), false
	case TimedOut(p.ctx):
		return CauseTimeout, true
	case errors.Is(p.ctx.Err(), context.DeadlineExceeded) && time.Since(p.began) >= p.circuit.breaker.options.Timeout*9/10:
		return CauseTimeout, false // the deadline of the caller is about that of the breaker
	}
	return CauseCaller, false
}

// exit ends a call with the error that it had, and returns the error for the caller.
func (p *call) exit(err error) error {
	c, b := p.circuit, p.circuit.breaker
	ended := p.ctx.Err() != nil
	cause, timedOut := p.cause(err)
	p.cancel()
	defer func() { p.observed(cause, err) }()
	c.mu.Lock()
	defer c.mu.Unlock()
	p.unlink()
	if p.next, p.prev = nil, nil; !p.running {
		c.calls--
	}
	switch {
	case err == nil || cause == CauseRejection && !p.cut:
		c.answer(p)
	case p.cut:
		cause = CauseTimeout
		b.count(cause)
		return c.cutError(err)
	case cause != CauseCaller || ended:
		c.fail(p, cause, err)
	}
	b.count(cause)
	if timedOut && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: %w", b.options.Engine, b.timeout, err)
	}
	return err
}

// cutError returns the error of a call that was waiting when the circuit opened, and ended with err.
func (c *Circuit) cutError(err error) error {
	if r := c.refused.Load(); r != nil {
		return &cutError{r.text, err}
	}
	return &cutError{fmt.Sprintf("%s: %v: its circuit opened while the call waited", c.engine(), ErrUnavailable), err} // and closed again
}

// answer records that a call was answered.
func (c *Circuit) answer(p *call) {
	if p.number > c.answered {
		c.answered = p.number
	}
	c.failures, c.suspect, c.used = 0, false, true
}

// fail records that a call failed. A call whose caller gave up, or that waited for less than half of the
// timeout because other steps took the time, only causes a check of the node.
func (c *Circuit) fail(p *call, cause Cause, err error) {
	if p.number <= c.answered {
		return
	}
	c.suspect = true
	if cause == CauseLost {
		return
	}
	if cause == CauseTimeout || cause == CauseCaller {
		c.doubt()
	}
	if cause == CauseCaller || cause == CauseTimeout && time.Since(p.began) < c.breaker.options.Timeout/2 {
		return
	}
	c.failures++
	switch {
	case c.failures < opensAfter || c.state.Position != Closed:
	case cause == CauseTimeout:
		c.openSilent()
	default:
		c.open(err)
	}
}

// doubt checks a node that did not answer a call, with the lock held. The circuit opens if the node
// answers neither the check nor any call within the timeout: callers who give up before an answer can
// arrive must not open the circuit of a node that serves.
func (c *Circuit) doubt() {
	b := c.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.doubted || b.closed || c.state.Position != Closed || time.Since(c.checked) < b.options.Timeout/10 {
		return
	}
	c.doubted, c.checked = true, time.Now()
	c.begun++
	number, answered := c.begun, c.answered
	b.probes.Go(func() {
		fit, err := c.check(b.options.Timeout, false)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.doubted = false
		switch {
		case fit:
			c.answered = max(c.answered, number)
			c.failures = 0
		case c.answered != answered || c.state.Position != Closed || b.ctx.Err() != nil || b.classify(err) == CauseLost:
		case errors.Is(err, context.DeadlineExceeded):
			c.openSilent()
		default:
			c.open(err)
		}
	})
}

// openSilent opens the circuit of a node that does not answer, with its lock held. Calls that wait end.
func (c *Circuit) openSilent() {
	c.open(c.breaker.timeout)
	if c.waiting.next == nil {
		return
	}
	for q := c.waiting.next; q != &c.waiting; q = q.next {
		q.cut = true
		q.cancel()
	}
}

// open opens the circuit, with its lock held.
func (c *Circuit) open(cause error) {
	b := c.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	c.state = BreakerState{Position: Open, Since: time.Now()}
	c.because(cause)
	b.counts.opened.Add(1)
	b.probes.Go(c.probe)
}

// because sets why the circuit is open.
func (c *Circuit) because(cause error) {
	c.state.Cause = cause
	c.refused.Store(&refusal{
		why: ErrUnavailable, open: true,
		text: fmt.Sprintf("%s: %v since %s: %v", c.engine(), ErrUnavailable, c.state.Since.UTC().Format(time.RFC3339),
			strings.ReplaceAll(WithoutKeys(cause), "; "+ErrNothingDone.Error(), "")),
	})
}

// engine names the engine, and the node of one that has several, in errors.
func (c *Circuit) engine() string {
	if c.node == "" {
		return c.breaker.options.Engine
	}
	return c.breaker.options.Engine + ", node " + c.node
}

// Pauses between probes. The first probe comes at once: a node that was restarted may be back. Each pause is changed by up to a quarter at random, so that the processes of a service do not probe at one time.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 400 * time.Millisecond
)

// probe tries the node again and again until it serves, and closes the circuit then.
func (c *Circuit) probe() {
	b := c.breaker
	if b.options.Cut != nil {
		_ = panics.Background(c.engine()+": cut", func() error { // it returns no error
			b.options.Cut(c)
			return nil
		})
	}
	b.report(c)
	for pause := time.Duration(0); ; pause = max(firstPause, min(2*pause, longestPause)) {
		jitter := time.Duration((rand.Float64() - 0.5) / 2 * float64(pause)) //nolint:gosec // nobody gains by guessing it
		select {
		case <-time.After(pause + jitter):
		case <-b.ctx.Done():
			return
		}
		if c.attempt() {
			b.report(c)
			return
		}
	}
}

// attempt probes once, and reports whether the circuit is closed.
func (c *Circuit) attempt() bool {
	b := c.breaker
	c.mu.Lock()
	c.state.Position = HalfOpen
	ready := c.unproven
	c.mu.Unlock()
	fit, err := c.check(b.options.Timeout, ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !fit {
		c.state.Position = Open
		c.because(err)
		return false
	}
	c.state = BreakerState{Position: Closed, Since: time.Now()}
	c.failures, c.unproven = 0, false
	c.answered = c.begun
	c.refused.Store(nil)
	return true
}

// check runs the engine's probe of the node, and reports whether the node serves.
func (c *Circuit) check(timeout time.Duration, ready bool) (fit bool, err error) {
	b := c.breaker
	ctx, cancel := context.WithDeadlineCause(b.ctx, time.Now().Add(timeout), b.timeout)
	defer cancel()
	err = panics.Background(c.engine()+": probe", func() error { return b.options.Probe(ctx, c, ready) })
	fit = err == nil || !ready && ctx.Err() == nil && b.classify(err) == CauseRejection
	if errors.Is(err, context.DeadlineExceeded) {
		err = b.timeout
	}
	return fit, err
}

func (b *Breaker) report(c *Circuit) {
	if f := b.notify.Load(); f != nil {
		(*f)(c.current())
	}
}
