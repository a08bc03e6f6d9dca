package weir

import (
	"context"
	"math/big"
	"math/bits"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A turn is that of a request which a leaky-queue has admitted, and which waits in Wait to start at a later time.
type turn struct {
	place
	moved chan struct{} // has a signal when it has another place
}

// A place in the queue is a time to start, and the units that nobody else has from there on.
type place struct {
	start time.Time
	cost  int64
	end   int64  // the time at which the key is fresh, after this, by the store's clock
	timed bool   // whether the store tells that
	under *bound // that it was taken under, by which it is given back
	pace  Limit  // that the start goes by
}

// takePlace is Take that can be undone, and that notes where in time the units are.
func (l *Limiter) takePlace(ctx context.Context, b *bound, key string, cost int64) (Decision, place, store.Taken, error) {
	asked := time.Now()
	t, err := store.Part{Binding: b.binding, Limit: b.limit, Key: key, Cost: cost}.Take(ctx, l.time(b))
	d, err := b.decision(t.Verdict, err)
	p := place{start: asked.Add(d.Delay), cost: cost, under: b, pace: b.limit}
	p.end, p.timed = t.End()
	return d, p, t, err
}

// takeTurn is Take that notes the turn of a request that a leaky-queue admits, if that is still to come. A turn that would come too
// late for the context is given back.
func (l *Limiter) takeTurn(ctx context.Context, b *bound, key string, cost int64) (Decision, *turn, error) {
	d, p, _, err := l.takePlace(ctx, b, key, cost)
	if err != nil || !d.Allowed || b.limit.Algorithm != LeakyQueue {
		return d, nil, err
	}
	t := &turn{place: p, moved: make(chan struct{}, 1)}
	wait, waits := l.addTurn(key, t)
	switch {
	case !waits:
		return d, nil, nil
	case tooLate(ctx, wait):
		return d, nil, l.giveUp(ctx, key, t, late(key, wait))
	}
	return d, t, nil
}

// awaitTurn waits until the turn starts.
func (l *Limiter) awaitTurn(ctx context.Context, key string, t *turn) error {
	for {
		wait := time.Until(l.lines.start(t))
		if wait <= 0 {
			l.lines.removeTurn(key, t)
			return nil
		}
		if err := sleep(ctx, wait, t.moved); err != nil {
			return l.giveUp(ctx, key, t, err)
		}
	}
}

// giveUp hands the turn's place on. The context has ended, but what it asked for must be undone all the same.
func (l *Limiter) giveUp(ctx context.Context, key string, t *turn, why error) error {
	if err := l.handOn(context.WithoutCancel(ctx), key, l.lines.removeTurn(key, t)); err != nil {
		return err
	}
	return why
}

// handOn gives a place, if its time has not come, to those who wait behind it. The last of them leaves a place at the
// end, which goes back to the store if nobody else has one behind it.
func (l *Limiter) handOn(ctx context.Context, key string, p place) error {
	if p = l.lines.moveUp(key, p); !p.timed || !time.Now().Before(p.start) {
		return nil
	}
	_, err := p.under.binding.Do(ctx, key, algorithm.Op{Kind: algorithm.Cancel, Cost: p.cost, End: p.end}, l.time(p.under))
	l.lines.stir(key)
	return err
}

func (ls *lines) start(t *turn) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return t.start
}

// addTurn puts a turn behind all others, also when the limit has changed and the next one knows of less that is under way than there is. It returns the
// wait for it. A turn that is now is not put anywhere if there are no others.
func (l *Limiter) addTurn(key string, t *turn) (wait time.Duration, waits bool) {
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	n := l.lines.at(key)
	switch last := len(n.turns) - 1; {
	case last >= 0:
		t.start = later(t.start, n.turns[last].over())
	case !time.Now().Before(t.start):
		l.lines.tidy(key, n)
		return 0, false
	}
	n.turns = append(n.turns, t)
	if b := l.bound.Load(); b != t.under { // it has changed since this one asked
		n.hasten(b)
	}
	return time.Until(t.start), true
}

// hasten gives earlier times to turns that wait at a slower pace than that of the next limit, if it is a leaky-queue: all that is still to come of the wait goes by
// at the next pace. None goes before the one ahead of it has had its time. The caller holds the mutex.
func (n *line) hasten(next *bound) {
	if next.limit.Algorithm != LeakyQueue {
		return
	}
	now, pace := time.Now(), interval(next.limit)
	var free time.Time // when the turn ahead has had its time
	for _, t := range n.turns {
		if old := interval(t.pace); pace.Cmp(old) < 0 && now.Before(t.start) {
			if start := later(now.Add(stretch(t.start.Sub(now), old, pace)), free); start.Before(t.start) {
				t.start = start
			}
			t.pace = next.limit
			signal(t.moved)
		}
		free = t.over()
	}
}

// over is when a place has had its time, rounded down, so that it is never later than the store has it.
func (p place) over() time.Time {
	hi, lo := bits.Mul64(uint64(p.cost), uint64(p.pace.Period))
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

// behind returns the index of the first turn that starts later.
func (n *line) behind(start time.Time) int {
	i, _ := slices.BinarySearchFunc(n.turns, start, func(t *turn, start time.Time) int {
		if t.start.After(start) {
			return 1
		}
		return -1
	})
	return i
}

// removeTurn takes a turn out, and returns its place.
func (ls *lines) removeTurn(key string, t *turn) place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	if i := slices.Index(n.turns, t); i >= 0 {
		n.turns = slices.Delete(n.turns, i, i+1)
	}
	ls.tidy(key, n)
	return t.place
}

// moveUp gives a place that is still to come to the next turn behind it, that one's to the next, and so on, and returns
// the place that is then left. A request moves up only into a place of its own size.
func (ls *lines) moveUp(key string, left place) place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.byKey[key]
	if n == nil || !time.Now().Before(left.start) {
		return left
	}
	for _, next := range n.turns[n.behind(left.start):] {
		if next.cost != left.cost {
			break
		}
		next.place, left = left, next.place
		signal(next.moved)
	}
	return left
}
