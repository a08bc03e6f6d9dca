package admission

import (
	"context"
	"errors"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// A holding is something that is settled once.
type holding interface {
	// settle gives it back, and charges the cost if that is known only now.
	settle(ctx context.Context, cost int64) error
	// giveBack is for work that was not done.
	giveBack(ctx context.Context) error
	// renew renews leases and estimates for their whole time. more is true while there is something
	// left to renew.
	renew(ctx context.Context) (more bool, err error)
}

// A place of a concurrent limiter.
type place struct{ *weir.Reservation }

func (p *place) settle(ctx context.Context, _ int64) error { return p.Cancel(ctx) }

func (p *place) giveBack(ctx context.Context) error { return p.Cancel(ctx) }

func (p *place) renew(ctx context.Context) (more bool, err error) {
	d, err := p.Renew(ctx)
	if err == nil && !d.Allowed {
		return false, errLost
	}
	return true, err
}

// A slot of a leaky queue. Once it has begun there is nothing to give back.
type slot struct{ *weir.Reservation }

func (*slot) settle(context.Context, int64) error { return nil }

func (s *slot) giveBack(ctx context.Context) error { return s.Cancel(ctx) }

func (*slot) renew(context.Context) (bool, error) { return false, nil }

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
