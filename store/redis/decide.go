package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A call is a request for the script.
type call struct {
	engine
	request *swap.Request
	mode    string
	steps   []step
}

// A step is an operation for the script.
type step struct {
	*limit
	*swap.Step
	near []int64 // times whose windows of a calendar the script needs
}

// Modes of the script, see apply.lua.
const (
	all  = "all"  // all takes are granted, or none is charged
	none = "none" // nothing is charged
	each = "each" // each step for itself
)

// furthest is beyond the end of every take, in microseconds, and exact in the script.
const furthest = 1<<53 - 1

// Decide implements [swap.Decider].
func (e engine) Decide(ctx context.Context, r *swap.Request) (done bool, err error) {
	c := call{engine: e, request: r, mode: each, steps: make([]step, len(r.Steps))}
	switch r.Mode {
	case swap.All:
		c.mode = all
	case swap.Look:
		c.mode = none
	}
	for i := range r.Steps {
		s := step{limit: compiled(r.Steps[i].Key), Step: &r.Steps[i]}
		if s.machine.algorithm == "" && s.Op.Kind != algorithm.Reset {
			return false, nil
		}
		if c.mode == all && s.Op.Cost > s.program.Limit().Capacity() { // a peek for the script
			c.mode = none
		}
		s.Op.End = max(-furthest, min(furthest, s.Op.End))
		c.steps[i] = s
	}
	answer, err := c.ask(ctx)
	if err != nil || answer.untold() {
		return false, err
	}
	r.At = answer.at
	if answer.values() {
		keys := make([]swap.Key, len(r.Steps))
		for i := range r.Steps {
			keys[i] = r.Steps[i].Key
		}
		r.Found, err = e.cells(answer, keys)
		return false, err
	}
	return true, c.read(answer)
}

// given returns the time for the script: "" for the server's clock.
func (s *step) given() string {
	if s.Now == store.OwnClock {
		return ""
	}
	return strconv.FormatInt(s.Now, 10)
}

// heals reports whether a state that is too far ahead is healed: by the server's time.
func (s *step) heals() bool { return s.healing && s.Now == store.OwnClock }

// peeks reports whether the step changes nothing, whatever the state.
func (s *step) peeks() bool {
	hopeless := s.Op.Cost > s.program.Limit().Capacity()
	switch s.Op.Kind {
	case algorithm.Reset:
		return false
	case algorithm.Renew:
		return s.Op.Cost == 0 || hopeless || s.machine.limit.Algorithm != algorithm.Concurrent
	case algorithm.Take:
		return s.Op.Cost == 0 || hopeless
	}
	return s.Op.Cost == 0
}

// verbs are the operations of the script, by kind.
var verbs = [...]string{"take", "take up to", "refund", "reset", "cancel", "renew"}

// part appends the arguments of one part: see apply.lua.
func (s *step) part(args []string) []string {
	first := len(args) + 4
	op := s.Op
	switch {
	case op.Kind == algorithm.Reset:
		return append(args, s.machine.algorithm, verbs[op.Kind], "0", s.head)
	case s.peeks():
		args = append(args, s.machine.algorithm, "peek", "", s.head)
		op = algorithm.Op{}
	default:
		args = append(args, s.machine.algorithm, verbs[op.Kind], "", s.head)
	}
	args = s.machine.args(args, op, s.heals(), s.times())
	args[first-2] = strconv.Itoa(len(args) - first)
	return args
}

// times are those whose windows a calendar needs.
func (s *step) times() []int64 {
	if s.machine.algorithm != calendar {
		return nil
	}
	return append(s.near, s.Time(time.Now().UnixMicro()))
}

// args returns the script's arguments for a step alone.
func (s *step) args() []string {
	if s.machine.algorithm == linear && s.Op.Kind == algorithm.Take && !s.peeks() {
		if s.Op.Cost == 1 && s.Now == store.OwnClock {
			return s.one
		}
		return s.quick(s.Op.Cost, s.given(), s.heals())
	}
	return s.part([]string{s.given(), each})
}

// quick returns the arguments of a take that take.lua carries out.
func (l *limit) quick(cost int64, given string, heals bool) []string {
	args := l.machine.kernel.quick(append(make([]string, 0, 10), given), cost, heals)
	if l.accounts {
		args = append(args, l.head)
	}
	return args
}

// mostEdges bounds the calls with the windows of a calendar: those around the time of this process,
// of the server, and of each state that is ahead.
const mostEdges = 16

// ask calls the script.
func (c *call) ask(ctx context.Context) (reply, error) {
	for range mostEdges {
		r, err := c.send(ctx)
		if err != nil || r.kind() != '!' {
			return r, err
		}
		var i int
		var t int64
		if _, err := fmt.Sscanf(r.rest, "!%d %d", &i, &t); err != nil || i < 1 || i > len(c.steps) {
			return r, fmt.Errorf("redis: the script returned %.100q", r.rest)
		}
		c.steps[i-1].near = append(c.steps[i-1].near, t)
	}
	return reply{}, fmt.Errorf("redis: %s: the server's clock runs away from the windows of the calendar; %w", c.request.Verb, store.ErrNothingDone)
}

func (c *call) send(ctx context.Context) (reply, error) {
	if len(c.steps) == 1 && c.mode != none {
		s := &c.steps[0]
		return c.engine.ask(ctx, c.request.Verb, []string{s.Name}, s.args())
	}
	keys, args := make([]string, len(c.steps)), make([]string, 2, 2+10*len(c.steps))
	args[0], args[1] = c.steps[0].given(), c.mode
	for i := range c.steps {
		keys[i] = c.steps[i].Name
		args = c.steps[i].part(args)
	}
	return c.engine.ask(ctx, c.request.Verb, keys, args)
}

// read reads the script's reply to each step.
func (c *call) read(r reply) (err error) {
	look, denied := r, false
	for i := range c.steps {
		s := &c.steps[i]
		granted, old := r.next()
		if s.Verdict, err = s.verdict(c.Store, granted, old, r.at); err != nil {
			return err
		}
		denied = denied || s.Verdict.Granted < 0
	}
	if c.mode == each || c.mode == all && !denied {
		return nil
	}
	for i := range c.steps { // the others are peeks
		s := c.steps[i]
		_, old := look.next()
		if s.Verdict.Granted < 0 {
			continue
		}
		peek := *s.Step
		peek.Op = algorithm.Op{}
		s.Step = &peek
		if c.steps[i].Verdict, err = s.verdict(c.Store, "+", old, r.at); err != nil {
			return err
		}
	}
	return nil
}
