package swap

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A binding is a limit bound to the store.
type binding struct {
	store *Store
	names store.Names
	limit Limit
}

var verbs = [...]string{"take", "take up to", "refund", "reset", "cancel", "renew", "reserve", "commit"}

// Do implements [store.Binding].
func (b *binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.DoStamped(ctx, key, op, now)
	return v, err
}

// DoStamped implements [store.Stamper].
func (b *binding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	r := &Request{Verb: verbs[op.Kind]}
	r.Steps = r.one[:]
	s := &r.one[0]
	if *s, err = b.step(key, op, now); err != nil {
		return v, 0, err
	}
	if err := b.store.do(ctx, r); err != nil {
		return v, 0, err
	}
	return s.Verdict, s.Time(r.At) * int64(b.limit.Program.Tick()), nil
}

// Inspect implements [store.Inspector]. Of an account it is the state that the binding's limit finds in it.
func (b *binding) Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error) {
	r := &Request{Verb: "inspect", Mode: view, Steps: make([]Step, 1)}
	s := &r.Steps[0]
	if *s, err = b.step(key, algorithm.Op{}, now); err != nil {
		return nil, 0, err
	}
	if err := b.store.do(ctx, r); err != nil {
		return nil, 0, err
	}
	return s.state, s.Time(r.At), nil
}

// Program implements [store.Inspector].
func (b *binding) Program() *algorithm.Program { return b.limit.Program }

// Key returns the place of the record of a caller's key.
func (b *binding) Key(key string) Key { return Key{b.names.Name(key), &b.limit} }

// step prepares an operation of a caller. Its times are in nanoseconds.
func (b *binding) step(key string, op algorithm.Op, now int64) (s Step, err error) {
	s = Step{Key: b.Key(key), Op: op, Now: now}
	if s.settles() && !b.limit.Accounts {
		return s, store.ErrUnnamed
	}
	switch {
	case now == store.OwnClock:
	case !b.store.options.TrustClientTime:
		return s, store.ErrClientTime
	case now > algorithm.MaxTime || now < -algorithm.MaxTime:
		return s, store.ErrTime
	default:
		s.Now = store.Microseconds(now)
	}
	s.Op.End, s.Op.Life = store.Microseconds(op.End), -store.Microseconds(-op.Life)
	return s, nil
}

// mostAtOnce is the number of requests of a batch that one request to the engine carries: a longer
// one would keep the engine from other clients.
const mostAtOnce = 64

// A batcher is a binding of an engine that decides many requests in one step.
type batcher struct{ *binding }

// TakeMany implements [store.Batcher]. One request to the engine has up to 64 steps, each decided for
// itself, all of one slot.
func (b *batcher) TakeMany(
	ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision,
) ([]algorithm.Decision, error) {
	steps := make([]Step, len(requests))
	for i, r := range requests {
		var err error
		if steps[i], err = b.step(r.Key, algorithm.Op{Cost: r.Cost}, now); err != nil {
			return decisions, err
		}
	}
	decided := make([]bool, len(steps))
	failed := b.decideEach(ctx, steps, decided)
	if failed != nil && slices.Contains(decided, true) {
		failed = &partialError{"take many: some requests of the batch had been decided before", failed}
	}
	for i := 0; i < len(steps) && decided[i]; i++ {
		decisions = append(decisions, steps[i].Verdict.Decision(b.limit.Program.Limit().Capacity()))
	}
	return decisions, failed
}

func (b *batcher) decideEach(ctx context.Context, steps []Step, decided []bool) error {
	for _, slot := range b.store.slots(steps) {
		for places := range slices.Chunk(slot, mostAtOnce) {
			r := &Request{Verb: "take many", Steps: pick(steps, places)}
			if err := b.store.do(ctx, r); err != nil {
				return err
			}
			for i, place := range places {
				steps[place], decided[place] = r.Steps[i], true
			}
		}
	}
	return nil
}
