package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Decide implements [swap.Decider]: a Take where a statement knows the algorithm, and a Reset. A peek is a load, so it is left to that.
func (e *engine) Decide(ctx context.Context, name, head string, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, done bool, err error) {
	switch op.Kind {
	case algorithm.Reset:
		v, at, err = e.forget(ctx, name, p, op, now)
		done = true
	case algorithm.Take:
		if op.Cost > 0 && op.Cost <= p.Limit().Capacity() {
			v, at, done, err = e.take(ctx, name, head, p, op, now)
		}
	}
	if isLost(err) {
		return v, 0, false, nil
	}
	return v, at, done, undone(err)
}

func (e *engine) forget(ctx context.Context, name string, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	err = e.try(ctx, func(conn *pgxpool.Conn) error { return conn.QueryRow(ctx, e.reset, name, given(now)).Scan(&at) })
	_, r := p.Apply(nil, op, at)
	return r.Verdict(), at, err
}

func (e *engine) take(ctx context.Context, name, head string, p *algorithm.Program, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, done bool, err error) {
	t, ok := takeOf(p, op.Cost, e.about(now))
	if !ok {
		return v, 0, false, nil
	}
	var after, found []int64
	var other bool // than the head that is ours
	args := append([]any{name, given(now), head}, t.args...)
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.takes[t.steps], args...).Scan(&at, &after, &found, &other)
	})
	if err != nil || other {
		return v, 0, false, err
	}
	if len(after) > 0 {
		before := t.before(after)
		if err := p.Check(before); err != nil {
			return v, 0, false, err
		}
		_, r := p.Apply(before, op, at)
		return r.Verdict(), at, true, nil
	}
	// Denied, by what the statement saw first or by what it then found in the row, which it does not tell. The first is an answer, for the
	// time before the statement waited. A state that has to be healed, and what is none, is another's.
	if p.Check(found) != nil || e.heals && p.Heal(slices.Clone(found), at) {
		return v, 0, false, nil //nolint:nilerr // the caller loads the row then, and reports the error
	}
	_, r := p.Apply(found, op, at)
	return r.Verdict(), at, !r.Allowed, nil
}

// about is an operation's time, or what the server's clock will say if this process's agrees with it.
func (e *engine) about(now int64) int64 {
	if now == store.OwnClock {
		return e.clock().UnixMicro()
	}
	return now
}

// given is an operation's time for a statement, in which NULL is the server's.
func given(now int64) *int64 {
	if now == store.OwnClock {
		return nil
	}
	return &now
}
