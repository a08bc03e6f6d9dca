package redis

import (
	"context"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A binding is a limit prepared for the script.
type binding struct {
	store    *Store
	names    store.Names
	program  *algorithm.Program
	machine  machine
	capacity int64
	accounts bool
	head     string   // what the value of an account that has nothing but a state of this limit begins with, up to the state; else ""
	healing  bool     // with the server's time
	one      []string // the arguments of a linear Take of one unit by the server's clock
}

// verbs are the operations, by kind, in the script and in errors.
var verbs = [...]string{"take", "take up to", "refund", "reset", "cancel", "renew", "reserve", "commit"}

func verb(k algorithm.Kind) string {
	if int(k) < len(verbs) {
		return verbs[k]
	}
	return verbs[0]
}

// Do implements [store.Binding].
func (b *binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.DoStamped(ctx, key, op, now)
	return v, err
}

// DoStamped implements [store.Stamper].
func (b *binding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	s, err := b.newStep(key, op, now)
	if err != nil {
		return v, 0, err
	}
	q := request{store: b.store, verb: verb(op.Kind), mode: each, steps: []step{s}}
	verdicts, at, err := q.decide(ctx)
	if err != nil {
		return v, 0, err
	}
	return verdicts[0], s.at(at) * tick, nil
}

// Program implements [store.Inspector].
func (b *binding) Program() *algorithm.Program { return b.program }

// Inspect implements [store.Inspector]. Of an account that is another limit's it shows what it would be under this one.
func (b *binding) Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error) {
	s, err := b.newStep(key, algorithm.Op{}, now)
	if err != nil {
		return nil, 0, err
	}
	r, err := b.store.load(ctx, "inspect", []string{s.name})
	if err != nil {
		return nil, 0, err
	}
	values, err := r.readValues(1)
	if err != nil {
		return nil, 0, err
	}
	at = s.at(r.at)
	a, err := b.account(values[0])
	if err != nil {
		return nil, at, b.store.foreignValue("inspect", s.name, err)
	}
	if s.heals() {
		a.Heal(at)
	}
	return a.View(b.program, at), at, nil
}
