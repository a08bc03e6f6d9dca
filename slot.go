package weir

import (
	"context"
	"math/big"
	"math/bits"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// A slot is the place of an admitted request that waits in Wait for its start: of a leaky-queue, or of
// another limit that has replaced one while requests wait for their slots.
type slot struct {
	place
	again chan struct{} // has a signal when the place or its start changes
}

// A place in the queue is a start, and the units taken for it.
type place struct {
	start time.Time
	taken store.Taken
	under *store.Bound // of the take, and of its settlement
	pace  Limit        // by which the start was computed
}

// takePlace is Take with a place, so that it can be undone. A failure of the store is that of all
// waiters of the key: w, which is nil outside Wait and Acquire, does not call a store that has failed
// for another waiter just now.
func (l *Limiter) takePlace(ctx context.Context, b *store.Bound, key string, cost int64, w *waiter) (Decision, place, error) {
	failure := l.lines.failure(w)
	if failure == nil {
		d, p, err := l.placeUnder(ctx, b, key, cost)
		if err == nil {
			return d, p, nil
		}
		failure = err
		l.lines.fail(ctx, key, w, err)
	}
	by, err := decide.Without(ctx, b, store.OnErrorOf(ctx, b.OnError), failure)
	if err != nil {
		return Decision{}, place{}, err
	}
	return l.placeUnder(ctx, by, key, cost)
}

func (l *Limiter) placeUnder(ctx context.Context, b *store.Bound, key string, cost int64) (Decision, place, error) {
	asked := time.Now()
	t, err := b.Part(key, cost).Take(ctx, l.time(b))
	d, err := decision(b, t.Verdict, err)
	return d, place{start: asked.Add(d.Delay), taken: t, under: b, pace: b.Limit}, err
}

// takeSlot takes and, if the request must wait, returns its slot: under a leaky-queue, and under any
// limit of a rate while others wait for slots, behind which it goes. A slot that would come too late
// for the context is given back.
func (l *Limiter) takeSlot(ctx context.Context, b *store.Bound, key string, cost int64, w *waiter) (Decision, *slot, error) {
	d, p, err := l.takePlace(ctx, b, key, cost, w)
	if err != nil || !d.Allowed || b.Limit.Algorithm != LeakyQueue && (b.Limit.Algorithm == Concurrent || !l.lines.queued(key)) {
		return d, nil, err
	}
	t := &slot{place: p, again: make(chan struct{}, 1)}
	wait, waits := l.addSlot(key, t)
	switch {
	case !waits:
		return d, nil, nil
	case tooLate(ctx, wait):
		return d, nil, l.giveUp(ctx, key, t, late(key, wait))
	}
	return d, t, nil
}

// awaitSlot waits until the slot starts.
func (l *Limiter) awaitSlot(ctx context.Context, key string, t *slot) error {
	for {
		wait := time.Until(l.lines.start(t))
		if wait <= 0 {
			l.lines.begin(key, t)
			return nil
		}
		if err := sleep(ctx, wait, t.again); err != nil {
			return l.giveUp(ctx, key, t, err)
		}
	}
}

// giveUp hands the slot's place on, also when the context has ended.
func (l *Limiter) giveUp(ctx context.Context, key string, t *slot, why error) error {
	if err := l.handOn(context.WithoutCancel(ctx), key, l.lines.removeSlot(key, t)); err != nil {
		return err
	}
	return why
}

// handOn gives a place, if its time has not come, to the waiters behind it. The last of them leaves a
// place at the end, which goes back to the store if no later place was taken.
func (l *Limiter) handOn(ctx context.Context, key string, p place) error {
	p = l.lines.moveUp(key, p)
	end, timed := p.taken.End()
	var err error
	switch {
	case !p.queued():
		_, err = p.taken.GiveBack(ctx, l.time(p.under))
	case !timed || !time.Now().Before(p.start):
		return nil
	default:
		_, err = p.under.Do(ctx, key, algorithm.Op{Kind: algorithm.Cancel, Cost: p.taken.Cost, End: end}, l.time(p.under))
	}
	l.lines.stir(key)
	return err
}

// queued reports whether the place has a time of its own in a leaky-queue. Others only wait for those.
func (p place) queued() bool { return p.under.Limit.Algorithm == LeakyQueue }

// queued reports whether any wait for their slot.
func (ls *lines) queued(key string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.byKey[key]
	return n != nil && len(n.slots) > 0
}

func (ls *lines) start(t *slot) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return t.start
}

// addSlot puts a slot behind all others, also when the limit has changed and the next one knows of less that is under way than there is. It returns the
// wait for it. A slot that is now is not put anywhere if there are no others.
func (l *Limiter) addSlot(key string, t *slot) (wait time.Duration, waits bool) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	n := l.lines.at(key)
	free := n.last.over()
	if last := len(n.slots) - 1; last >= 0 {
		free = n.slots[last].over()
	}
	if t.start.Before(free) {
		t.start = free
	}
	if len(n.slots) == 0 && !time.Now().Before(t.start) {
		l.lines.tidy(key, n)
		return 0, false
	}
	n.slots = append(n.slots, t)
	if b := l.bound.Load(); b != t.under { // it has changed since this one asked
		n.hasten(b)
	}
	return time.Until(t.start), true
}

// hasten gives earlier times to slots that wait at a slower pace than that of the next limit, if it is one of a rate: all that is still to come of the wait goes by
// at the next pace. None goes before the one ahead of it has had its time. The caller holds the mutex.
func (n *line) hasten(next *store.Bound) {
	if next.Limit.Algorithm == Concurrent {
		return
	}
	now, pace := time.Now(), interval(next.Limit)
	if last := &n.last; last.under != nil && pace.Cmp(interval(last.pace)) < 0 {
		last.pace = next.Limit
	}
	free := n.last.over() // when the slot ahead has had its time
	for _, t := range n.slots {
		if old := interval(t.pace); pace.Cmp(old) < 0 && now.Before(t.start) {
			t.start, t.pace = later(now.Add(stretch(t.start.Sub(now), old, pace)), free), next.Limit
			signal(t.again)
		}
		free = t.over()
	}
}

// over is when a place has had its time, rounded down, so that it is never later than the store has it. That of no place is the zero time.
func (p place) over() time.Time {
	if p.under == nil || !p.queued() {
		return p.start
	}
	hi, lo := bits.Mul64(uint64(p.taken.Cost), uint64(p.pace.Period))
	span, _ := bits.Div64(hi, lo, uint64(p.pace.Count)) // at most the time for the capacity, which is less than 73 years
	return p.start.Add(time.Duration(span))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// interval returns the time between two units of a limit, in nanoseconds.
func interval(l Limit) *big.Rat { return big.NewRat(int64(l.Period), l.Count) }

// stretch returns a wait at one pace as one at another, which is faster, rounded up.
func stretch(wait time.Duration, from, to *big.Rat) time.Duration {
	x := new(big.Rat).SetInt64(int64(wait))
	x.Mul(x, new(big.Rat).Quo(to, from))
	ns, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	return time.Duration(ns.Int64() + int64(rest.Sign()))
}

// behind returns the index of the first slot that starts later.
func (n *line) behind(start time.Time) int {
	i, _ := slices.BinarySearchFunc(n.slots, start, func(t *slot, start time.Time) int {
		if t.start.After(start) {
			return 1
		}
		return -1
	})
	return i
}

// removeSlot takes a slot out, and returns its place.
func (ls *lines) removeSlot(key string, t *slot) place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	n.remove(t)
	ls.tidy(key, n)
	return t.place
}

// begin takes a slot out whose time has come. Once the limit has changed, the line remembers it until it has had its time: under the next limit the store
// may let another one go earlier.
func (ls *lines) begin(key string, t *slot) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	if ls.changed {
		n.last = t.place
		time.AfterFunc(time.Until(t.over()), func() { ls.forget(key) })
	}
	n.remove(t)
	ls.tidy(key, n)
}

// forget tidies a line that may have nothing left to remember.
func (ls *lines) forget(key string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if n := ls.byKey[key]; n != nil {
		ls.tidy(key, n)
	}
}

func (n *line) remove(t *slot) {
	if i := slices.Index(n.slots, t); i >= 0 {
		n.slots = slices.Delete(n.slots, i, i+1)
	}
}

// moveUp gives a place that is still to come to the next slot behind it, that one's to the next, and so on, and returns
// the place that is then left. A request moves up only into a place of its own size.
func (ls *lines) moveUp(key string, left place) place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.byKey[key]
	if n == nil || !time.Now().Before(left.start) {
		return left
	}
	for _, next := range n.slots[n.behind(left.start):] {
		if next.taken.Cost != left.taken.Cost {
			break
		}
		next.place, left = left, next.place
		signal(next.again)
	}
	return left
}
