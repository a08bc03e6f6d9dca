package admission

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// errWithoutStore is the error of a limiter that decided in place of its store by its own option: it
// returns a decision, and no error.
var errWithoutStore = errors.New("the limiter decided without its store, which failed")

// errNoLimit is the error of the zero Limiter as a result of Override.
var errNoLimit = errors.New("admission: Override returned a *weir.Limiter without a limit; accepted: nil, or what weir.New returned")

// take has a limiter decide. It reports whether there is a decision; the error is also that of a
// store in place of which the limiter decided.
func (g *Gate) take(r *http.Request, key string, a *Admission) (decided bool) {
	l := g.limiter
	if g.opts.Override != nil {
		if other := g.opts.Override(r); other != nil {
			l = other
		}
	}
	cost := int64(1)
	if g.opts.Cost != nil {
		cost = g.opts.Cost(r)
	}
	b := l.Bound()
	if b == nil {
		a.Err = errNoLimit
		return false
	}
	ctx, cause := r.Context(), (*error)(nil)
	if g.opts.OnStoreError != store.Deny {
		cause = new(error)
		ctx = store.WithOnError(decide.WithCause(ctx, cause), g.opts.OnStoreError)
	}
	if a.Err = g.takeUnder(ctx, l, b, r, a, key, cost); a.Err != nil {
		return false
	}
	if a.Decision.Limit != b.Capacity { // it has changed since
		b = l.Bound()
	}
	if a.bound, a.name = b, b.Text(); g.opts.Name != "" && l == g.limiter {
		a.name = g.opts.Name
	}
	if cause != nil {
		a.Err = *cause
	}
	if a.Decision.Failed && a.Err == nil {
		a.Err = errWithoutStore
	}
	return true
}

// takeUnder takes the cost, in a way that can be settled if it is to be.
func (g *Gate) takeUnder(ctx context.Context, l *weir.Limiter, b *store.Bound, r *http.Request, a *Admission, key string, cost int64) (err error) {
	switch algorithm := b.Limit.Algorithm; {
	case algorithm == weir.Concurrent || algorithm == weir.LeakyQueue && g.opts.Charge == nil:
		reservation, err := l.Reserve(ctx, key, cost)
		if err != nil {
			return err
		}
		a.Decision = reservation.Decision
		switch lease := reservation.Lease(); { // not that of b: the limit may have changed since
		case !a.Decision.Allowed || cost == 0:
		case lease > 0:
			g.hold(r, a, &place{reservation}, lease)
		case a.Decision.Delay > 0:
			g.hold(r, a, &slot{reservation}, 0)
		}
		return nil
	case g.opts.Charge != nil:
		h, err := l.Hold(ctx, key, cost, g.opts.Hold)
		if err != nil {
			return err
		}
		if a.Decision = h.Decision; a.Decision.Allowed {
			g.hold(r, a, &estimate{h}, g.opts.Hold)
		}
		return nil
	}
	a.Decision, err = l.Take(ctx, key, cost)
	return err
}
