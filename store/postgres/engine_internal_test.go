package postgres

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store/swap"
)

// decideOne is Decide of one step.
func (e *engine) decideOne(
	ctx context.Context, name, head string, p *algorithm.Program, op algorithm.Op, now int64,
) (v algorithm.Verdict, at int64, done bool, err error) {
	l := &swap.Limit{Program: p, Accounts: head != "", Head: head}
	r := &swap.Request{Steps: []swap.Step{{Key: swap.Key{Name: name, Limit: l}, Op: op, Now: now}}}
	done, err = e.Decide(ctx, r)
	return r.Steps[0].Verdict, r.Steps[0].Time(r.At), done, err
}

// loadOne is Load of one key.
func (e *engine) loadOne(ctx context.Context, name string) (swap.Cell, error) {
	cells, err := e.Load(ctx, []swap.Key{{Name: name}})
	if err != nil {
		return swap.Cell{}, err
	}
	return cells[0], nil
}

// swapOne is Swap of one record.
func (e *engine) swapOne(ctx context.Context, name string, old swap.Cell, next swap.Record, life time.Duration) (bool, error) {
	return e.Swap(ctx, []swap.Change{{Key: swap.Key{Name: name}, Old: old, Next: next, Life: life}})
}
