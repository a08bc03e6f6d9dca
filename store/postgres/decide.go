package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// Decide implements [swap.Decider]: a Take by a limit that a statement knows, and a Reset, of one key. A
// peek is a load anyway.
func (e *engine) Decide(ctx context.Context, r *swap.Request) (done bool, err error) {
	s := &r.Steps[0]
	switch {
	case len(r.Steps) > 1 || r.Mode != swap.Each:
		return false, nil
	case s.Op.Kind == algorithm.Reset:
		done, err = true, e.forget(ctx, r, s)
	case s.Op.Kind == algorithm.Take && s.Op.Cost > 0 && s.Op.Cost <= s.Limit.Program.Limit().Capacity():
		done, err = e.take(ctx, r, s)
	}
	if isLost(err) {
		return false, nil
	}
	return done, undone(err)
}

func (e *engine) forget(ctx context.Context, r *swap.Request, s *swap.Step) error {
	err := e.try(ctx, func(conn *pgxpool.Conn) error { return conn.QueryRow(ctx, e.reset, s.Name, given(s.Now)).Scan(&r.At) })
	_, result := s.Limit.Program.Apply(nil, s.Op, r.At)
	s.Verdict = result.Verdict()
	return err
}

func (e *engine) take(ctx context.Context, r *swap.Request, s *swap.Step) (done bool, err error) {
	p := s.Limit.Program
	t, ok := takeOf(p, s.Op.Cost, s.Time(e.clock().UnixMicro()))
	if !ok {
		return false, nil
	}
	var after, found []int64
	var other bool // the head is not the limit's
	args := append([]any{s.Name, given(s.Now), s.Limit.Head}, t.args...)
	err = e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, e.takes[t.steps], args...).Scan(&r.At, &after, &found, &other)
	})
	if err != nil || other {
		return false, err
	}
	if len(after) > 0 {
		before := t.before(after)
		if err := p.Check(before); err != nil {
			return false, err
		}
		_, result := p.Apply(before, s.Op, r.At)
		s.Verdict = result.Verdict()
		return true, nil
	}
	// Denied, by the state that the statement saw first, or by the one in the row after a wait, which it
	// does not return. The first is right, for the time before the wait. A state that has to be healed,
	// and an invalid one, are left to the loop, which reports the error.
	if p.Check(found) != nil || e.heals && p.Heal(slices.Clone(found), r.At) {
		return false, nil //nolint:nilerr // see above
	}
	_, result := p.Apply(found, s.Op, r.At)
	s.Verdict = result.Verdict()
	return !result.Allowed, nil
}

// given is an operation's time for a statement, in which NULL is the server's.
func given(now int64) *int64 {
	if now == store.OwnClock {
		return nil
	}
	return &now
}
