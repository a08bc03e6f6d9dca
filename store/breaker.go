package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of a Breaker.
const (
	DefaultTimeout  = time.Second
	DefaultMaxCalls = 2048
)

// opensAfter is the number of failed calls in a row that opens a circuit.
const opensAfter = 3

// ErrUnavailable is in errors of calls that a [Breaker] refused or cut short, because the engine does not serve calls.
var ErrUnavailable = errors.New("the store is unavailable")

// ErrOverloaded is in errors of calls that a [Breaker] refused because too many calls wait for the
// engine, before its circuit opens. It is no failure of the store (see [IsFailure]): no OnError allows such a
// request, so that a flood of requests does not switch a limit off.
var ErrOverloaded = errors.New("the store is overloaded")

// errUnknownEffect is in errors of calls that the engine may have carried out.
var errUnknownEffect = errors.New("whether anything was changed is unknown")

// A Guarded is a Store with a circuit breaker. All stores of weir that have an engine are.
type Guarded interface{ Breaker() *Breaker }

// A Breaker keeps a slow or absent engine from making callers wait. Each store with an engine makes one, and wraps its
// bindings and its joint takes in it.
//
// A call ends when its timeout is over, whatever it does inside. After 3 calls in a row
// have failed, by timeouts, connections that could not be made or an engine that refuses everybody, a circuit opens: from then on
// calls return at once, with an error that is [ErrUnavailable] and [ErrNothingDone]. A probe in the background closes
// the circuit when the engine serves again. A call that failed does not count if the engine has meanwhile carried out
// one that began later: then only this call is slow, such as one on a locked row. Calls whose callers
// gave up before the timeout do not count either. They cause a check, and the circuit opens if the
// engine answers neither the check nor another call within the timeout.
//
// An engine of several nodes has a [Circuit] for each, so that a node that hangs does not close the others.
//
// The number of calls that wait for a node is bounded. More are refused at once, with [ErrOverloaded].
type Breaker struct {
	options BreakerOptions
	timeout *timeoutError // the cause of contexts that the breaker ends

	stop   context.CancelFunc
	ctx    context.Context //nolint:containedctx // of probes, until Close
	probes sync.WaitGroup

	mu       sync.Mutex
	circuits []*Circuit
	closed   bool
	notify   atomic.Pointer[func(BreakerState)]
	observer atomic.Pointer[func(Call)]
	counts   breakerCounts
}

// BreakerOptions are what an engine's package gives NewBreaker.
type BreakerOptions struct {
	// Engine is in errors: the kind of the engine and its address, without passwords.
	Engine string
	// Timeout bounds a call, whatever happens in it, and a probe; 0 is DefaultTimeout.
	Timeout time.Duration
	// MaxCalls is the most calls that wait for one node at a time; 0 is DefaultMaxCalls.
	MaxCalls int
	// Detach says that the client library ignores contexts at times, as while it connects. Calls then run in goroutines of
	// their own from the first failure until the engine answers, and return when their time is over.
	Detach bool
	// Classify returns the cause of an error of the engine's. It is not called for calls whose time is over.
	Classify func(error) Cause
	// Probe finds out whether a node serves calls, without a change of any state. ready means that the node must be
	// fit in all respects: the store was opened without a check and has not served yet. It returns soon after its context ends.
	Probe func(ctx context.Context, c *Circuit, ready bool) error
	// Cut, if not nil, is called when the circuit of a node has opened: it closes the connections, so that commands
	// which their callers do not wait for any more are not sent.
	Cut func(c *Circuit)
}

// A Cause is why a call failed, as far as a Breaker needs to distinguish.
type Cause int

// Causes of failed calls.
const (
	// CauseCaller is an error before the engine was involved, such as an operation that makes no sense. It says
	// nothing of the engine.
	CauseCaller Cause = iota
	// CauseRejection is an error that the engine returned for this one command, as for a value of another type. The
	// engine serves.
	CauseRejection
	// CauseLost is a connection that was lost. That opens no circuit: the next call connects again, and shows whether the
	// engine is there.
	CauseLost
	// CauseConnection is a connection that could not be made.
	CauseConnection
	// CauseUnready is an engine that refuses all commands, such as one that loads its data or wants another password.
	CauseUnready
	// CauseTimeout is a call that was not answered in time.
	CauseTimeout
)

// BreakerCounts are since a store was made, except Calls.
type breakerCounts struct {
	timeouts, connections, unready, rejections, opened, refused, overflows atomic.Int64
}

// NewBreaker returns a breaker without circuits. Close ends it.
func NewBreaker(o BreakerOptions) *Breaker {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = DefaultMaxCalls
	}
	b := &Breaker{options: o, timeout: &timeoutError{o.Timeout}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// Close ends the probes, and waits for them. Circuits stay as they are.
func (b *Breaker) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.probes.Wait()
}

// Circuit returns the circuit of a node, which it makes if there is none. The name of the only node may be "".
func (b *Breaker) Circuit(node string) *Circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.circuits {
		if c.node == node {
			return c
		}
	}
	c := &Circuit{breaker: b, node: node}
	b.circuits = append(slices.Clip(b.circuits), c)
	return c
}

// Retain leaves out the closed circuits of nodes that the engine does not have any more: those that are not listed.
func (b *Breaker) Retain(nodes ...*Circuit) {
	b.mu.Lock()
	circuits := b.circuits
	b.mu.Unlock()
	var gone []*Circuit
	for _, c := range circuits {
		if !slices.Contains(nodes, c) && c.current().Position == Closed {
			gone = append(gone, c)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.circuits = slices.DeleteFunc(slices.Clone(b.circuits), func(c *Circuit) bool { return slices.Contains(gone, c) })
}

// Within returns a context that ends after d at the latest. Calls that end with it had a timeout: it is for an
// operation of several calls that have the time of one.
func (b *Breaker) Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, b.timeout)
}

// Timeout returns the time that a call has.
func (b *Breaker) Timeout() time.Duration { return b.options.Timeout }

// Notify has f called, in another goroutine, with the state of each circuit that opens or closes from now on. Calls for
// one circuit come one after another. A second Notify replaces the first.
func (b *Breaker) Notify(f func(BreakerState)) { b.notify.Store(&f) }

// A Position is what a circuit does with calls.
type Position int

// Positions of a circuit.
const (
	Closed   Position = iota // calls go to the engine
	Open                     // calls are refused
	HalfOpen                 // calls are refused, and a probe is under way
)

// String returns "closed", "open" or "half-open".
func (p Position) String() string {
	switch p {
	case Open:
		return "open"
	case HalfOpen:
		return "half-open"
	default:
		return "closed"
	}
}

// A BreakerState is the state of a circuit.
type BreakerState struct {
	Position Position
	Node     string    // of an engine that has several
	Since    time.Time // when the circuit opened or closed; zero for one that has always been closed
	Cause    error     // why it is open, by the last probe that failed; nil for a closed circuit
}

// State returns the state of the circuit that has been open for longest, or a closed one if none is open.
func (b *Breaker) State() BreakerState {
	var worst BreakerState
	for i, s := range b.States() {
		open, openest := s.Position != Closed, worst.Position != Closed
		if i == 0 || open && (!openest || s.Since.Before(worst.Since)) {
			worst = s
		}
	}
	return worst
}

// States returns the state of each circuit.
func (b *Breaker) States() []BreakerState {
	b.mu.Lock()
	circuits := b.circuits
	b.mu.Unlock()
	states := make([]BreakerState, len(circuits))
	for i, c := range circuits {
		states[i] = c.current()
	}
	return states
}

// Count sets the breaker's numbers among those of a store.
func (b *Breaker) Count(c *Counts) {
	b.mu.Lock()
	circuits := b.circuits
	b.mu.Unlock()
	c.Calls = 0
	for _, circuit := range circuits {
		circuit.mu.Lock()
		c.Calls += int64(circuit.calls)
		circuit.mu.Unlock()
	}
	n := &b.counts
	c.Timeouts, c.Disconnections = n.timeouts.Load(), n.connections.Load()
	c.Unready, c.Rejections = n.unready.Load(), n.rejections.Load()
	c.Opened, c.Refused, c.Overflows = n.opened.Load(), n.refused.Load(), n.overflows.Load()
}

// Trip opens a circuit that is closed, for a store that was opened without a check of the engine. The circuit closes
// when a probe finds the node fit in all respects.
func (b *Breaker) Trip(c *Circuit, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Position == Closed {
		c.unproven = true
		c.open(cause)
	}
}

func (b *Breaker) count(cause Cause) {
	switch cause {
	case CauseTimeout:
		b.counts.timeouts.Add(1)
	case CauseConnection, CauseLost:
		b.counts.connections.Add(1)
	case CauseUnready:
		b.counts.unready.Add(1)
	case CauseRejection:
		b.counts.rejections.Add(1)
	}
}

func (b *Breaker) classify(err error) Cause {
	if err == nil || b.options.Classify == nil {
		return CauseCaller
	}
	return b.options.Classify(err)
}

// A timeoutError is the cause of a context that a Breaker ended.
type timeoutError struct{ timeout time.Duration }

func (e *timeoutError) Error() string {
	return fmt.Sprintf("no answer within %v: %v", e.timeout, context.DeadlineExceeded)
}

func (e *timeoutError) Unwrap() error { return context.DeadlineExceeded }

// TimedOut reports whether a context ended with the timeout of a Breaker, and not for a reason of the caller's.
func TimedOut(ctx context.Context) bool {
	_, own := context.Cause(ctx).(*timeoutError) //nolint:errorlint // as the breaker gave it
	return own
}

// A refusal is the error of calls that a breaker refuses. It does not wrap the cause, which was the error of other calls.
type refusal struct {
	why  error // ErrUnavailable or ErrOverloaded
	text string
	open bool // the circuit is open; false: too many calls wait
}

func (r *refusal) Error() string { return r.text + "; " + ErrNothingDone.Error() }

func (r *refusal) Unwrap() []error { return []error{r.why, ErrNothingDone} }

// IsCircuitOpen reports whether err is that of a call which an open circuit refused, or cut short when it opened. The
// error of a call that was refused because too many calls wait is none. [Breaker.Notify] reports each circuit that opens, so
// that these errors need no log.
func IsCircuitOpen(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.open
	}
	_, cut := errors.AsType[*cutError](err)
	return cut
}

// A cutError is the error of a call that was waiting when the circuit opened.
type cutError struct {
	text  string
	inner error // the error with which the call ended; of it only counts whether nothing was done
}

func (e *cutError) Error() string {
	if errors.Is(e.inner, ErrNothingDone) {
		return e.text + "; " + ErrNothingDone.Error()
	}
	return e.text + "; " + errUnknownEffect.Error()
}

func (e *cutError) Is(target error) bool {
	return target == ErrUnavailable || target == ErrNothingDone && errors.Is(e.inner, ErrNothingDone)
}
