package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A step is an operation on one state.
type step struct {
	*binding
	name string
	op   algorithm.Op // its times are microseconds
	now  int64        // the time told, in microseconds, or store.OwnClock
	near []int64      // times in whose windows of a calendar the script wants to be told
}

// newStep prepares an operation of a caller's: now and the times of op are in nanoseconds.
func (b *binding) newStep(key string, op algorithm.Op, now int64) (step, error) {
	if !b.accounts && (op.Kind == algorithm.Reserve || op.Kind == algorithm.Commit) {
		return step{}, store.ErrUnnamed
	}
	told, err := b.store.told(now)
	if err != nil {
		return step{}, err
	}
	op.End = max(-furthest, min(furthest, store.Microseconds(op.End)))
	if op.Kind == algorithm.Reserve {
		op.Life = max(1, op.Life/tick+min(1, op.Life%tick))
	}
	return step{binding: b, name: b.names.Name(key), op: op, now: told}, nil
}

// furthest is beyond the end of every take, in microseconds, and exact in the script.
const furthest = 1<<53 - 1

// told returns a time in microseconds, or store.OwnClock.
func (s *Store) told(now int64) (int64, error) {
	switch {
	case now == store.OwnClock:
		return now, nil
	case !s.trusts:
		return 0, store.ErrClientTime
	case now > algorithm.MaxTime || now < -algorithm.MaxTime:
		return 0, store.ErrTime
	}
	return store.Microseconds(now), nil
}

// given returns the time for the script: "" for the server's clock.
func (s *step) given() string {
	if s.now == store.OwnClock {
		return ""
	}
	return strconv.FormatInt(s.now, 10)
}

// at is when the step is taken, if the server's time is this.
func (s *step) at(now int64) int64 {
	if s.now == store.OwnClock {
		return now
	}
	return s.now
}

// heals reports whether a state that is too far ahead is healed: by the server's time.
func (s *step) heals() bool { return s.healing && s.now == store.OwnClock }

// peeks reports whether the step changes nothing, whatever the state.
func (s *step) peeks() bool {
	switch s.op.Kind {
	case algorithm.Reset, algorithm.Reserve, algorithm.Commit:
		return false
	case algorithm.Renew:
		return s.op.Cost == 0 || s.op.Cost > s.capacity || s.machine.limit.Algorithm != algorithm.Concurrent
	case algorithm.Take:
		return s.op.Cost == 0 || s.op.Cost > s.capacity
	}
	return s.op.Cost == 0
}

// swaps reports whether the script leaves every such step to a swap.
func (s *step) swaps() bool {
	switch s.op.Kind {
	case algorithm.Reserve, algorithm.Commit:
		return true
	case algorithm.Reset:
		return false
	}
	return s.machine.algorithm == ""
}

// part appends the arguments of one part: see apply.lua.
func (s *step) part(args []string) []string {
	first := len(args) + 4
	op := s.op
	switch {
	case op.Kind == algorithm.Reset:
		return append(args, s.machine.algorithm, verb(op.Kind), "0", s.head)
	case s.peeks():
		args = append(args, s.machine.algorithm, "peek", "", s.head)
		op = algorithm.Op{}
	default:
		args = append(args, s.machine.algorithm, verb(op.Kind), "", s.head)
	}
	args = s.machine.args(args, op, s.heals(), s.times())
	args[first-2] = strconv.Itoa(len(args) - first)
	return args
}

// times are those in whose windows a calendar is told.
func (s *step) times() []int64 {
	switch {
	case s.machine.algorithm != calendar:
		return nil
	case s.now != store.OwnClock:
		return append(s.near, s.now)
	}
	return append(s.near, time.Now().UnixMicro())
}

// A request is the steps of one call of the script, which have one time. The mode says how they belong together.
type request struct {
	store *Store
	verb  string // in errors
	mode  string
	steps []step
}

// Modes of the script, see apply.lua.
const (
	all  = "all"  // all takes are granted, or none is charged
	none = "none" // nothing is charged
	each = "each" // each step for itself
)

// decide carries out the request: by a call of the script, or where that can't by a swap.
func (q *request) decide(ctx context.Context) ([]algorithm.Verdict, int64, error) {
	if q.swaps() {
		return q.store.await(ctx, q, nil)
	}
	r, err := q.ask(ctx)
	switch {
	case err != nil:
		return nil, 0, err
	case r.untold():
		return q.store.await(ctx, q, nil)
	case r.values():
		return q.store.await(ctx, q, &r)
	}
	for i := range q.steps {
		if q.steps[i].op.Kind == algorithm.Reset {
			q.store.recent.remove(q.steps[i].name)
		}
	}
	verdicts, err := q.read(r)
	return verdicts, r.at, err
}

// swaps reports whether the request is not to be tried by the script: a step is never the script's, or one on its name was not lately. A reset always
// is, whatever there is.
func (q *request) swaps() bool {
	for i := range q.steps {
		s := &q.steps[i]
		if s.swaps() || s.op.Kind != algorithm.Reset && q.store.recent.has(s.name) {
			return true
		}
	}
	return false
}

// mostEdges bounds the calls with the windows of a calendar: those around the time of this process,
// of the server, and of each state that is ahead.
const mostEdges = 16

// ask calls the script.
func (q *request) ask(ctx context.Context) (reply, error) {
	for range mostEdges {
		r, err := q.call(ctx)
		if err != nil || r.kind() != '!' {
			return r, err
		}
		var i int
		var t int64
		if _, err := fmt.Sscanf(r.rest, "!%d %d", &i, &t); err != nil || i < 1 || i > len(q.steps) {
			return r, fmt.Errorf("redis: the script returned %.100q", r.rest)
		}
		q.steps[i-1].near = append(q.steps[i-1].near, t)
	}
	return reply{}, fmt.Errorf("redis: %s: the server's clock runs away from the windows of the calendar; %w", q.verb, store.ErrNothingDone)
}

func (q *request) call(ctx context.Context) (reply, error) {
	if len(q.steps) == 1 && q.mode != none {
		s := &q.steps[0]
		return q.store.ask(ctx, q.verb, []string{s.name}, s.args())
	}
	keys, args := make([]string, len(q.steps)), make([]string, 2, 2+10*len(q.steps))
	args[0], args[1] = q.steps[0].given(), q.mode
	for i := range q.steps {
		keys[i] = q.steps[i].name
		args = q.steps[i].part(args)
	}
	return q.store.ask(ctx, q.verb, keys, args)
}

// args returns the script's arguments for a step alone.
func (s *step) args() []string {
	if s.machine.algorithm == linear && s.op.Kind == algorithm.Take && !s.peeks() {
		if s.op.Cost == 1 && s.now == store.OwnClock {
			return s.one
		}
		return s.quick(s.op.Cost, s.given(), s.heals())
	}
	return s.part([]string{s.given(), each})
}

// quick returns the arguments of a take that take.lua carries out.
func (b *binding) quick(cost int64, given string, heals bool) []string {
	args := b.machine.kernel.quick(append(make([]string, 0, 10), given), cost, heals)
	if b.accounts {
		args = append(args, b.head)
	}
	return args
}

// read reads the script's reply to each step.
func (q *request) read(r reply) (verdicts []algorithm.Verdict, err error) {
	verdicts, denied := make([]algorithm.Verdict, len(q.steps)), false
	look := r
	for i := range q.steps {
		granted, old := r.next()
		if verdicts[i], err = q.steps[i].verdict(granted, old, r.at); err != nil {
			return nil, err
		}
		denied = denied || verdicts[i].Granted < 0
	}
	if !q.looks(denied) {
		return verdicts, nil
	}
	for i := range q.steps { // those that would have granted stand as they stood
		_, old := look.next()
		if verdicts[i].Granted < 0 {
			continue
		}
		peek := q.steps[i]
		peek.op = algorithm.Op{}
		if verdicts[i], err = peek.verdict("+", old, r.at); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

// looks reports whether steps that are not denied are looks only.
func (q *request) looks(denied bool) bool { return q.mode == none || q.mode == all && denied }
