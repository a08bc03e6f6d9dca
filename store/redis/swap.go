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

// A swapping carries out a request here, for what the script leaves alone: all values are loaded, the steps are taken by algorithm.Account, and
// the new values are swapped in, by one call of the script, if none has changed. If one has, it begins again.
type swapping struct {
	*request
	names []string // each once
	of    []int    // the name of each step

	at       int64 // the server's time when the values were read
	accounts []algorithm.Account
	verdicts []algorithm.Verdict
	healed   int64
}

// swap carries out the request by a swap. found has the values, if they have been loaded.
func (q *request) swap(ctx context.Context, found *reply) ([]algorithm.Verdict, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, q.store.timeout)
	defer cancel()
	w := &swapping{request: q, of: make([]int, len(q.steps)), verdicts: make([]algorithm.Verdict, len(q.steps))}
	for i := range q.steps {
		n := slices.Index(w.names, q.steps[i].name)
		if n < 0 {
			n, w.names = len(w.names), append(w.names, q.steps[i].name)
		}
		w.of[i] = n
	}
	if len(w.names) < len(q.steps) {
		found = nil // it has some values more than once
	}
	r, err := w.load(ctx, found)
	for lost := 0; err == nil; lost++ {
		began := time.Now()
		var swapped bool
		if r, swapped, err = w.try(ctx, r); swapped {
			q.store.healed.Add(w.healed)
			return w.verdicts, w.at, nil
		}
		if err == nil {
			q.store.conflicts.Add(1)
			err = w.pause(ctx, lost, time.Since(began))
		}
	}
	return nil, 0, err
}

func (w *swapping) load(ctx context.Context, found *reply) (reply, error) {
	if found != nil {
		return *found, nil
	}
	r, err := w.store.ask(ctx, w.verb, w.names, []string{"", "v", ""})
	if err != nil {
		err = untouched(err)
	}
	return r, err
}

// try takes the steps on the values of a reply, and swaps the result in. If a value has changed, it returns the reply that says so.
func (w *swapping) try(ctx context.Context, r reply) (_ reply, swapped bool, err error) {
	w.at = r.at
	values, err := r.readValues(len(w.names))
	if err != nil {
		return r, false, err
	}
	if err := w.read(values); err != nil {
		return r, false, err
	}
	before := slices.Clone(w.accounts)
	w.take()
	args, changed := w.args(values, before)
	if !changed {
		return r, true, nil
	}
	r, err = w.store.ask(ctx, w.verb, w.names, args)
	return r, err == nil && !r.values(), err
}

func (w *swapping) read(values []string) error {
	w.accounts = make([]algorithm.Account, len(w.names))
	for i := range w.steps {
		n := w.of[i]
		if w.accounts[n].Program != nil {
			continue
		}
		a, err := w.steps[i].account(values[n])
		if err != nil {
			return w.store.foreignValue(w.verb, w.names[n], err)
		}
		w.accounts[n] = a
	}
	return nil
}

// take takes the steps.
func (w *swapping) take() {
	w.healed = 0
	denied := false
	after := make([]algorithm.Account, len(w.steps))
	healed := make([]bool, len(w.steps))
	for i := range w.steps {
		after[i], w.verdicts[i], healed[i] = w.account(i, w.steps[i].op)
		if w.mode == each {
			w.keep(i, after[i], healed[i])
		}
		denied = denied || w.verdicts[i].Granted < 0
	}
	if w.mode == each {
		return
	}
	looks := w.looks(denied)
	for i := range w.steps {
		if looks && w.verdicts[i].Granted >= 0 {
			_, w.verdicts[i], _ = w.account(i, algorithm.Op{})
		} else {
			w.keep(i, after[i], healed[i])
		}
	}
}

// account returns what becomes of a step's account, which it leaves alone.
func (w *swapping) account(i int, op algorithm.Op) (a algorithm.Account, v algorithm.Verdict, healed bool) {
	s := &w.steps[i]
	a = w.accounts[w.of[i]]
	a.State = slices.Clone(a.State)
	healed = s.heals() && a.Heal(w.at)
	a, r := a.Apply(s.program, op, s.at(w.at))
	return a, r.Verdict(), healed
}

// keep makes an account that of the name, unless the step only looked.
func (w *swapping) keep(i int, a algorithm.Account, healed bool) {
	if op := w.steps[i].op; op.Cost == 0 && op.Kind != algorithm.Reset && !w.steps[i].swaps() {
		return
	}
	w.accounts[w.of[i]] = a
	if healed {
		w.healed++
	}
}

// args returns the arguments of the swap, and whether it changes anything.
func (w *swapping) args(values []string, before []algorithm.Account) (args []string, changed bool) {
	args = append(make([]string, 0, 2+4*len(w.names)), "", "x")
	for n, a := range w.accounts {
		if same(a, before[n]) {
			args = append(args, values[n], "=", "", "")
			continue
		}
		value, px, ms := w.value(n, a)
		args = append(args, values[n], value, px, strconv.FormatInt(ms, 10))
		changed = changed || value != values[n]
	}
	return args, changed
}

// day is how much longer states are kept where callers tell the time, in milliseconds.
const day = 86_400_000

// value returns what to keep of an account, and for how long, in milliseconds.
func (w *swapping) value(n int, a algorithm.Account) (value, px string, ms int64) {
	var s *step
	at, told := int64(0), false
	for i := range w.steps {
		if w.of[i] != n {
			continue
		}
		if t := w.steps[i].at(w.at); s == nil || t < at {
			s, at = &w.steps[i], t
		}
		told = told || w.steps[i].now != store.OwnClock
	}
	life := max(0, a.Life(at))
	if told {
		return s.value(a), "PX", (life+999)/1000 + day
	}
	if life == 0 {
		return "", "PXAT", 0
	}
	return s.value(a), "PXAT", (at + life + 999) / 1000
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
