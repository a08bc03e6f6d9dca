package weir

import (
	"context"
	"slices"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A turn is that of a request which a leaky-queue has admitted, to start at a later time.
type turn struct {
	place
	waits bool          // someone waits for it in Wait, and can be given an earlier place
	moved chan struct{} // has a signal when it has another place
}

// A place in the queue is a time to start, and the units that nobody else has from there on.
type place struct {
	start time.Time
	cost  int64
	end   int64 // where the units end, by the store's clock; known only if the store tells its time
}

// takeTurn is Take that notes the turn of a request that is admitted with a delay. A turn that would come too
// late for the context is given back.
func (l *Limiter) takeTurn(ctx context.Context, key string, cost int64, waits bool) (Decision, *turn, error) {
	at, asked := l.time(), time.Now()
	d, err := l.decision(l.binding.Do(ctx, key, algorithm.Op{Kind: algorithm.Take, Cost: cost}, at))
	if err != nil || !d.Allowed || d.Delay == 0 {
		return d, nil, err
	}
	t := &turn{place: place{start: asked.Add(d.Delay), cost: cost}, waits: waits, moved: make(chan struct{}, 1)}
	if at != store.OwnClock {
		t.end = at + int64(d.ResetAfter)
	}
	l.lines.addTurn(key, t)
	if waits && tooLate(ctx, d.Delay) {
		return d, nil, l.giveUp(ctx, key, t, late(key, d.Delay))
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

// giveUp hands the turn's place to those behind it. The last of them leaves a place at the end, which goes
// back to the store if nobody else has one behind it.
func (l *Limiter) giveUp(ctx context.Context, key string, t *turn, why error) error {
	left := l.lines.removeTurn(key, t)
	if left.end != 0 && time.Now().Before(left.start) {
		op := algorithm.Op{Kind: algorithm.Cancel, Cost: left.cost, End: left.end}
		// The context has ended; what it asked for must be undone all the same.
		if _, err := l.binding.Do(context.WithoutCancel(ctx), key, op, l.time()); err != nil {
			return err
		}
		l.lines.stir(key)
	}
	return why
}

func (ls *lines) start(t *turn) time.Time {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return t.start
}

func (ls *lines) addTurn(key string, t *turn) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	i, _ := slices.BinarySearchFunc(n.turns, t, func(a, b *turn) int { return a.start.Compare(b.start) })
	n.turns = slices.Insert(n.turns, i, t)
}

// removeTurn takes a turn out, moves those behind it up by one place, and returns the place that is then left. A
// request moves up only into a place of its own size, and not past one that does not move.
func (ls *lines) removeTurn(key string, t *turn) (left place) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.at(key)
	defer ls.tidy(key, n)
	i := slices.Index(n.turns, t)
	left = t.place
	if i < 0 {
		return left
	}
	n.turns = slices.Delete(n.turns, i, i+1)
	if !time.Now().Before(left.start) {
		return left // the place was used, or is past
	}
	for _, next := range n.turns[i:] {
		if !next.waits || next.cost != left.cost {
			break
		}
		next.place, left = left, next.place
		signal(next.moved)
	}
	return left
}
