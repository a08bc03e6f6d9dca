package algorithm

import (
	"strconv"
	"time"
)

// A Program is a Limit compiled for a clock: the pure transition (operation, state, now) → (state, result).
//
// A state is a slice of int64; empty means a key never seen. now and the times in a state are ticks since the
// Unix epoch: nanoseconds in memory, microseconds in engines whose numbers are exact to 53 bits only.
// States move forward in time: a now that lies before the state's own time may deny for longer, and mints nothing.
type Program struct {
	limit    Limit
	tick     int64 // nanoseconds per tick
	capacity int64
	machine  machine
	text     string // of the limit
}

// A machine is one algorithm over its state. Waits in its decisions are ticks, and Never stays Never.
type machine interface {
	// take admits cost, which is 0 (a peek, which changes nothing) to the capacity, or denies.
	// It may change state in place, and returns it.
	take(state []int64, cost, now int64) ([]int64, Decision)
	// refund gives back up to cost units of a state that is not empty.
	refund(state []int64, cost, now int64) []int64
	// heal repairs a state that is further ahead of now than the limit can have brought it, to full debt.
	heal(state []int64, now int64) bool
	// convert returns the state of a key that used these units under another limit: as if all were taken now,
	// unless the limits are so alike that the units can come back when they would have.
	convert(u usage, now int64) []int64
	// valid reports whether a state that is not empty is of a form that the machine makes, with times up to farthest from 0.
	valid(state []int64, farthest int64) bool
}

// Compile checks the limit and prepares it for a clock that counts in ticks: time.Nanosecond or
// time.Microsecond. It returns a *LimitError for an invalid limit, and for a limit beyond exact
// arithmetic. It accepts periods of a few nanoseconds, which [Limit.Validate] refuses as a slip.
func Compile(limit Limit, tick time.Duration) (*Program, error) {
	limit.nanoseconds = true // equal to the result of ParseLimit for its text
	limit = limit.Canonical()
	if err := limit.validate(); err != nil {
		return nil, err
	}
	capacity := limit.Capacity()
	machine, err := limit.Algorithm.kind().compile(limit, capacity, int64(tick))
	if err != nil {
		return nil, err
	}
	return &Program{limit: limit, tick: int64(tick), capacity: capacity, machine: machine, text: limit.String()}, nil
}

// CompileShared is Compile for states that mean the same under every limit of the linear family, so that limits may
// differ between the requests of one key: the time until the key is fresh, in ticks and 1/SharedUnit ns. It
// rounds the emission interval up as [Program.SharedWord] does, and refuses what that refuses. Such a Program never heals:
// a state that is too far ahead for one limit may come from another.
func CompileShared(limit Limit, tick time.Duration) (*Program, error) {
	p, err := Compile(limit, tick)
	if err != nil {
		return nil, err
	}
	step, ok := p.limit.sharedStep()
	if !ok || p.capacity > maxSpan/step {
		return nil, refuse("text", strconv.Quote(p.limit.String()),
			"where limits share a state, one of the linear family, of up to 16,000,000 per second, that refills within 4 years")
	}
	unit, depth := SharedUnit*p.tick, p.capacity*step
	p.machine = shared{linear{
		Interval: Interval{step, unit}, depth: Span{depth / unit, depth % unit}, queue: p.limit.Algorithm == LeakyQueue,
	}}
	return p, nil
}

// shared is the kernel over states that other limits made too.
type shared struct{ linear }

func (shared) heal([]int64, int64) bool { return false }

// wholeTicks converts a period for an algorithm whose windows are whole ticks.
func wholeTicks(l Limit, tick int64) (int64, error) {
	field := "period"
	if l.Algorithm == Concurrent {
		field = "lease"
	}
	if int64(l.Period)%tick != 0 {
		return 0, refuse(field, l.Period, "a whole number of %v in this store", time.Duration(tick))
	}
	if int64(l.Period) >= maxSpan/2 {
		return 0, refuse(field, l.Period, "less than %v", time.Duration(maxSpan/2))
	}
	return int64(l.Period) / tick, nil
}

// Limit returns the limit, in canonical form.
func (p *Program) Limit() Limit { return p.limit }

// Tick returns the length of the ticks in which the program counts.
func (p *Program) Tick() time.Duration { return time.Duration(p.tick) }

// Apply carries out an operation at now. It may change the state in place, and returns the new one: the same if
// nothing was taken or given back, empty after a reset. The operation's cost must not be negative.
func (p *Program) Apply(state []int64, op Op, now int64) ([]int64, Result) {
	var r Result
	switch op.Kind {
	case TakeUpTo:
		state, r = p.takeUpTo(state, op.Cost, now)
	case Refund:
		if len(state) > 0 && op.Cost > 0 {
			state = p.machine.refund(state, op.Cost, now)
		}
		state, r.Decision = p.machine.take(state, 0, now)
	case Cancel:
		if len(state) > 0 && op.Cost > 0 {
			state, r.Granted = p.cancel(state, op.Cost, op.End, now)
		}
		state, r.Decision = p.machine.take(state, 0, now)
	case Renew:
		if _, leases := p.machine.(concurrent); !leases {
			op.Cost = 0
		}
		if state, r.Decision = p.renew(state, op, now); r.Allowed {
			r.Granted = op.Cost
		}
	case Reset:
		state = state[:0]
		_, r.Decision = p.machine.take(nil, 0, now)
	default:
		if state, r.Decision = p.take(state, op.Cost, now); r.Allowed {
			r.Granted = op.Cost
		}
	}
	r.Decision = p.inTime(r.Decision)
	return state, r
}

func (p *Program) take(state []int64, cost, now int64) ([]int64, Decision) {
	if cost <= p.capacity {
		return p.machine.take(state, cost, now)
	}
	state, d := p.machine.take(state, 0, now)
	d.Allowed, d.RetryAfter = false, Never
	return state, d
}

func (p *Program) takeUpTo(state []int64, cost, now int64) ([]int64, Result) {
	state, d := p.machine.take(state, 0, now)
	granted := min(cost, d.Remaining)
	if cost > 0 {
		state, d = p.machine.take(state, max(granted, 1), now)
	}
	return state, Result{Decision: d, Granted: granted}
}

// inTime fills in what is the same for every algorithm, and turns ticks into time.
func (p *Program) inTime(d Decision) Decision {
	d.Limit = p.capacity
	if d.RetryAfter != Never {
		d.RetryAfter *= time.Duration(p.tick)
	}
	d.ResetAfter *= time.Duration(p.tick)
	d.Delay *= time.Duration(p.tick)
	return d
}

// Heal repairs a state that is further ahead of now than the limit can have brought it, as it is after an
// engine's clock stepped back: it becomes full debt, so that no key is blocked for longer than its own
// reset time. It changes the state in place and says whether it did; the store writes it back, and counts it.
//
// Only a store whose clock is the same for all may heal: between clocks that differ, it would mint.
func (p *Program) Heal(state []int64, now int64) bool {
	return len(state) > 0 && p.machine.heal(state, now)
}

// Fresh reports whether the state at now is indistinguishable from that of a key never seen, so that it may
// be forgotten.
func (p *Program) Fresh(state []int64, now int64) bool {
	if len(state) == 0 {
		return true
	}
	_, d := p.machine.take(state, 0, now)
	return d.ResetAfter <= 0
}
