package weir

import (
	"context"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// A CapacityError reports a wait that would never end, because the cost is above the limit's capacity.
type CapacityError struct{ Cost, Capacity int64 }

// Error implements error.
func (e *CapacityError) Error() string {
	return fmt.Sprintf("weir: cost is %d, which never passes; accepted: up to the limit's capacity, %d", e.Cost, e.Capacity)
}

// Wait blocks until the key may pass at the cost, and takes it.
//
// Those who wait on one key of one Limiter go first in, first out; Take does not queue, and may go
// in between. When ctx ends first, Wait takes nothing, or gives its units back, the next waiter
// moves up, and Wait returns ctx.Err(). If the wait would outlast the deadline of ctx, Wait returns
// an error at once, which is [context.DeadlineExceeded]. A cost above the capacity is a
// [*CapacityError]. A concurrent limit is refused: its places have to be given back, which
// [Limiter.Acquire] is for.
//
// Wait does not space the first requests: an idle key may use its whole burst at once. "10/1s"
// admits 10 requests at once, and then 1 each 100ms. With burst=1, as in "10/1s burst=1", requests
// are spaced from the first on.
//
// When SetLimit changes the limit of this Limiter, Wait asks again at once. Of what others change or give back, another Limiter of the name or another process, it learns
// when its time comes: it asks again when the store has said that it would pass.
//
// Under a leaky-queue Wait also waits for the slot that Take would return as Delay, and under a limit that has taken the place of one, for those
// that wait for theirs. Waits are in real time, whatever
// the clock of WithClock says.
//
// If the store fails, all waiters of the key on this Limiter return its error at once, or decide
// without it as [WithOnStoreError] sets.
func (l *Limiter) Wait(ctx context.Context, key string, cost int64) error {
	b := l.Bound()
	if err := check(ctx, b, cost, store.OwnClock); err != nil || cost == 0 {
		return err
	}
	if err := admits(b, cost, false); err != nil {
		return err
	}
	var t *slot // to wait for, once admitted
	err := l.queue(ctx, key, cost, false, func(b *store.Bound, w *waiter) (d Decision, err error) {
		d, t, err = l.takeSlot(ctx, b, key, cost, w)
		return d, err
	})
	if err != nil || t == nil {
		return err
	}
	return l.awaitSlot(ctx, key, t)
}

// queue waits in the key's line until take is admitted. acquire is true for waiters of a concurrent
// limit.
func (l *Limiter) queue(ctx context.Context, key string, cost int64, acquire bool, take func(*store.Bound, *waiter) (Decision, error)) error {
	w := l.lines.join(key, cost, acquire)
	defer l.lines.leave(key, w)
	return l.admit(ctx, key, w, take)
}

// admit waits in the key's queue until the waiter is first, and then takes until the take is
// admitted.
func (l *Limiter) admit(ctx context.Context, key string, w *waiter, take func(*store.Bound, *waiter) (Decision, error)) error {
	for first := false; !first; {
		select {
		case <-w.first:
			first = true
		case <-w.again: // those ahead have decided
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := l.lines.failure(w); err != nil && decide.Denies(ctx, l.Bound(), err) {
			return err
		}
		if !l.lines.undecided(w) {
			continue
		}
		b := l.bound.Load()
		sure, err := l.hopeless(ctx, b, key, w)
		switch {
		case l.bound.Load() != b: // it is told to decide again, or is first
		case err != nil:
			return err
		case sure && !first:
			l.stays(key, w, b)
		}
	}
	return l.ask(ctx, key, w, take)
}

// ask asks the store until the waiter, which is first in line, is admitted.
func (l *Limiter) ask(ctx context.Context, key string, w *waiter, take func(*store.Bound, *waiter) (Decision, error)) error {
	for {
		l.lines.asks(key, w)
		b := l.bound.Load()
		if err := admits(b, w.cost, w.acquire); err != nil {
			return err
		}
		d, err := take(b, w)
		wait := d.RetryAfter
		switch {
		case err != nil || d.Allowed:
			return err
		case l.bound.Load() != b:
			continue
		case w.acquire:
			wait = poll(d.RetryAfter)
		case tooLate(ctx, wait):
			return late(key, wait)
		}
		l.stays(key, w, b)
		if err := sleep(ctx, wait, w.again); err != nil {
			return err
		}
	}
}

// mostTried is how many of those ahead in line are tried to find out whether a deadline can be kept. A wait that is
// hopeless only because of those beyond is found out later.
const mostTried = 256

// hopeless returns an error if the limit never admits the cost, or if the wait would outlast the
// deadline; it computes the wait from a copy of the key's state and the waiters ahead. sure is
// false if a waiter ahead took meanwhile. Stores without an Inspector leave the deadline to later
// takes.
func (l *Limiter) hopeless(ctx context.Context, b *store.Bound, key string, w *waiter) (sure bool, err error) {
	// a place may be given back at any time
	if err := admits(b, w.cost, w.acquire); err != nil || w.acquire {
		return true, err
	}
	inspector := b.Inspector
	if _, limited := ctx.Deadline(); inspector == nil || !limited || l.lines.failure(w) != nil {
		return true, nil //nolint:nilerr // after a failure waiters decide without the store
	}
	state, start, err := inspector.Inspect(ctx, key, l.time(b))
	if err != nil {
		return true, l.inspectFailed(ctx, key, err)
	}
	now, program := start, inspector.Program()
	costs, sure := l.lines.ahead(key, w, b.Capacity)
	if b.Limit.Algorithm.Linear() {
		costs = lumps(costs, b.Capacity)
	}
	for i, cost := range costs[:min(len(costs), mostTried)] {
		own := i == len(costs)-1
		for {
			var r algorithm.Result
			state, r = program.Apply(state, algorithm.Op{Cost: cost}, now)
			wait := time.Duration(now-start)*program.Tick() + r.RetryAfter
			if tooLate(ctx, wait) || own && tooLate(ctx, wait+r.Delay) {
				return true, late(key, wait+r.Delay)
			}
			if r.Allowed {
				break
			}
			now += int64(r.RetryAfter / program.Tick())
		}
	}
	return sure, nil
}

// inspectFailed reports a failure of the store to all waiters of the key. It returns the error, or
// nil if the waiters decide without the store.
func (l *Limiter) inspectFailed(ctx context.Context, key string, err error) error {
	l.lines.fail(ctx, key, nil, err)
	if decide.Denies(ctx, l.Bound(), err) {
		return err
	}
	return nil
}

// lumps puts costs together, up to the capacity, except the last one. To a linear limit that is the same.
func lumps(costs []int64, capacity int64) (together []int64) {
	lump, own := int64(0), costs[len(costs)-1]
	for _, cost := range costs[:len(costs)-1] {
		if lump > capacity-cost {
			together = append(together, lump)
			lump = 0
		}
		lump += cost
	}
	if lump > 0 {
		together = append(together, lump)
	}
	return append(together, own)
}

func tooLate(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && wait > time.Until(deadline)
}

func late(key string, wait time.Duration) error {
	return fmt.Errorf("weir: %.100q would have to wait %v: %w", key, wait, context.DeadlineExceeded)
}

// sleep waits for a time, or for a signal to look again, or returns the context's error.
func sleep(ctx context.Context, wait time.Duration, again <-chan struct{}) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-again:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// time returns the time to give the store: that of WithClock, else the store's own, known here if it tells.
func (l *Limiter) time(b *store.Bound) int64 {
	if now := l.clock(); now != store.OwnClock && now != outOfReach {
		return now
	}
	if b.Clock != nil {
		return b.Clock.Now()
	}
	return store.OwnClock
}
