package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A swapping carries out requests here, for what the script leaves alone: all values are loaded, the steps are taken by algorithm.Account, one
// request after another, and the new values are swapped in, by one call of the script, if none has changed. If one has, it begins again.
type swapping struct {
	store    *Store
	verb     string // in errors
	requests []*waiter
	names    []string
	of       map[string]int // where a name is among them

	at       int64    // the server's time when the values were read
	values   []string // as they were read
	before   []algorithm.Account
	accounts []algorithm.Account
	foreign  []error // why a value is no account, if it is none
	firsts   []first
	healed   int64
}

// A first is of the steps on one name.
type first struct {
	step *step // the one of the earliest time
	at   int64 // that
	told bool  // a caller told the time of any
}

func newSwapping(s *Store, requests []*waiter) *swapping {
	w := &swapping{store: s, verb: requests[0].verb, requests: requests, of: map[string]int{}}
	for _, r := range requests {
		for i := range r.steps {
			name := r.steps[i].name
			if _, known := w.of[name]; !known {
				w.of[name] = len(w.names)
				w.names = append(w.names, name)
			}
		}
	}
	return w
}

// run carries out the requests. Its error is that of all of them.
func (w *swapping) run(ctx context.Context) error {
	r, err := w.load(ctx)
	for lost := 0; err == nil; lost++ {
		began := time.Now()
		var swapped bool
		if r, swapped, err = w.try(ctx, r); swapped {
			w.store.healed.Add(w.healed)
			w.remember()
			return nil
		}
		if err == nil {
			w.store.conflicts.Add(1)
			err = w.pause(ctx, lost, time.Since(began))
		}
	}
	return err
}

// remember remembers the names whose accounts are still not for the script, and forgets the others.
func (w *swapping) remember() {
	for n, name := range w.names {
		if a := w.accounts[n]; w.firsts[n].step == nil || w.foreign[n] != nil || w.firsts[n].step.plain(a) {
			w.store.recent.remove(name)
		} else {
			w.store.recent.add(name)
		}
	}
}

func (w *swapping) load(ctx context.Context) (reply, error) {
	if first := w.requests[0]; first.found != nil && len(first.steps) == len(w.names) {
		return *first.found, nil
	}
	r, err := w.store.load(ctx, w.verb, w.names)
	if err != nil {
		err = untouched(err)
	}
	return r, err
}

// try takes the steps on the values of a reply, and swaps the result in. If a value has changed, it returns the reply that says so.
func (w *swapping) try(ctx context.Context, r reply) (_ reply, swapped bool, err error) {
	w.at, w.healed = r.at, 0
	w.dropEnded()
	if w.values, err = r.readValues(len(w.names)); err != nil {
		return r, false, err
	}
	w.read()
	w.before = slices.Clone(w.accounts)
	for _, q := range w.requests {
		w.take(q)
	}
	args, changed := w.args()
	if !changed {
		return r, true, nil
	}
	r, err = w.store.ask(ctx, w.verb, w.names, args)
	return r, err == nil && !r.values(), err
}

// dropEnded leaves out the requests whose callers have gone: they have done nothing yet.
func (w *swapping) dropEnded() {
	w.requests = slices.DeleteFunc(slices.Clone(w.requests), func(q *waiter) bool {
		err := q.ended()
		if err != nil {
			q.err = fmt.Errorf("redis: %s at %s: %w; %w", q.verb, q.store.server, err, store.ErrNothingDone)
		}
		return err != nil
	})
}

func (w *swapping) read() {
	w.accounts, w.foreign, w.firsts = make([]algorithm.Account, len(w.names)), make([]error, len(w.names)), make([]first, len(w.names))
	for _, q := range w.requests {
		for i := range q.steps {
			s := &q.steps[i]
			n := w.of[s.name]
			f := &w.firsts[n]
			if f.step == nil {
				w.accounts[n], w.foreign[n] = s.account(w.values[n])
			}
			if t := s.at(w.at); f.step == nil || t < f.at {
				f.step, f.at = s, t
			}
			f.told = f.told || s.now != store.OwnClock
		}
	}
}

// take takes the steps of a request.
func (w *swapping) take(q *waiter) {
	q.time, q.err, q.verdicts = w.at, nil, make([]algorithm.Verdict, len(q.steps))
	for i := range q.steps {
		if err := w.foreign[w.of[q.steps[i].name]]; err != nil {
			q.err = w.store.foreignValue(q.verb, q.steps[i].name, err)
			return
		}
	}
	denied := false
	after, healed := make([]algorithm.Account, len(q.steps)), make([]bool, len(q.steps))
	for i := range q.steps {
		s := &q.steps[i]
		after[i], q.verdicts[i], healed[i] = w.step(s, s.op)
		if q.mode == each {
			w.keep(s, after[i], healed[i])
		}
		denied = denied || q.verdicts[i].Granted < 0
	}
	if q.mode == each {
		return
	}
	looks := q.looks(denied)
	for i := range q.steps {
		s := &q.steps[i]
		if looks && q.verdicts[i].Granted >= 0 {
			_, q.verdicts[i], _ = w.step(s, algorithm.Op{})
		} else {
			w.keep(s, after[i], healed[i])
		}
	}
}

// step returns what becomes of a step's account, which it leaves alone.
func (w *swapping) step(s *step, op algorithm.Op) (a algorithm.Account, v algorithm.Verdict, healed bool) {
	a = w.accounts[w.of[s.name]]
	a.State = slices.Clone(a.State)
	healed = s.heals() && a.Heal(w.at)
	a, r := a.Apply(s.program, op, s.at(w.at))
	return a, r.Verdict(), healed
}

// keep makes an account that of the step's name, unless the step only looked.
func (w *swapping) keep(s *step, a algorithm.Account, healed bool) {
	n := w.of[s.name]
	if s.peeks() && (s.op.Cost == 0 || s.plain(w.accounts[n])) {
		return
	}
	w.accounts[n] = a
	if healed {
		w.healed++
	}
}

// args returns the arguments of the swap, and whether it changes anything.
func (w *swapping) args() (args []string, changed bool) {
	args = append(make([]string, 0, 2+4*len(w.names)), "", "swap")
	for n, a := range w.accounts {
		if w.foreign[n] != nil || same(a, w.before[n]) {
			args = append(args, w.values[n], "=", "", "")
			continue
		}
		value, px, ms := w.value(n, a)
		args = append(args, w.values[n], value, px, strconv.FormatInt(ms, 10))
		changed = changed || value != w.values[n]
	}
	return args, changed
}

// day is how much longer states are kept where callers tell the time, in milliseconds.
const day = 86_400_000

// value returns what to keep of an account, and for how long, in milliseconds.
func (w *swapping) value(n int, a algorithm.Account) (value, px string, ms int64) {
	f := w.firsts[n]
	life := max(0, a.Life(f.at))
	switch {
	case f.told:
		return f.step.value(a), "PX", (life+999)/1000 + day
	case life == 0:
		return "", "PXAT", 0
	}
	return f.step.value(a), "PXAT", (f.at + life + 999) / 1000
}

const (
	shortestAttempt = 100 * time.Microsecond
	mostDoublings   = 2
)

// pause waits after a swap that was lost, for a random time of about that which it took: somebody else's succeeded, so it is enough to thin
// them out.
func (w *swapping) pause(ctx context.Context, lost int, attempt time.Duration) error {
	most := max(attempt, shortestAttempt) << min(lost, mostDoublings)
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // nobody gains by guessing it
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redis: %s at %s: lost %d swaps: %w; %w", w.verb, w.store.server, lost+1, ctx.Err(), store.ErrNothingDone)
	}
}
