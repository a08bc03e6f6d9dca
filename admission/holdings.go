package admission

import (
	"context"
	"errors"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// A lease of a concurrent limiter.
type lease struct{ *weir.Reservation }

func (l *lease) settle(ctx context.Context, _ int64) error { return l.Cancel(ctx) }

func (l *lease) giveBack(ctx context.Context) error { return l.Cancel(ctx) }

func (l *lease) renew(ctx context.Context) (more bool, err error) {
	d, err := l.Renew(ctx)
	if err == nil && !d.Allowed {
		return false, errLost
	}
	return true, err
}

// A turn of a leaky queue. Once it has come there is nothing to give back.
type turn struct{ *weir.Reservation }

func (*turn) settle(context.Context, int64) error { return nil }

func (t *turn) giveBack(ctx context.Context) error { return t.Cancel(ctx) }

func (*turn) renew(context.Context) (bool, error) { return false, nil }

// An estimate of a cost that is known later.
type estimate struct{ *weir.Hold }

func (e *estimate) settle(ctx context.Context, cost int64) error {
	d, err := e.Commit(ctx, cost)
	if err == nil && !d.Allowed && cost > 0 {
		return errUncharged
	}
	return err
}

func (e *estimate) giveBack(ctx context.Context) error { return e.Cancel(ctx) }

// renew goes on after a denial: there may be room for the estimate later.
func (e *estimate) renew(ctx context.Context) (more bool, err error) {
	d, err := e.Renew(ctx)
	if err == nil && !d.Allowed {
		err = errLost
	}
	return true, err
}

// A token is what policies hold for a request: leases, or an estimate, or both. "" is a turn alone.
type token struct {
	set  *policy.Set
	text string
}

func (t *token) settle(ctx context.Context, cost int64) error {
	if t.text == "" {
		return nil
	}
	return t.set.CommitLate(ctx, t.text, cost) // held calls it once
}

func (t *token) giveBack(ctx context.Context) error {
	if t.text == "" {
		return nil
	}
	return t.set.Cancel(ctx, t.text)
}

func (t *token) renew(ctx context.Context) (more bool, err error) {
	next, err := t.set.Renew(ctx, t.text)
	if t.text = next; errors.Is(err, policy.ErrSettled) {
		err = errLost
	}
	return next != "", err
}
