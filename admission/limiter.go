package admission

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// retryAfterFailure is when to come back if the store could not decide, and nobody knows.
const retryAfterFailure = time.Second

// errWithoutStore is the error of a store that failed, of which the limiter returned nothing.
var errWithoutStore = errors.New("the limiter decided without its store, which failed")

// errNoLimit is of a limiter that an Override returned, and that is the zero Limiter.
var errNoLimit = errors.New("admission: Override returned a *weir.Limiter without a limit; accepted: nil, or what weir.New returned")

// take has the limiter decide.
func (g *Gate) take(r *http.Request, a *Admission) {
	l := g.limiter
	if g.opts.Override != nil {
		if other := g.opts.Override(r); other != nil {
			l = other
		}
	}
	a.gate, a.limit = g, l
	key, cost := g.opts.Key.Of(r), g.cost(r)
	a.Err = g.takeOf(l, r, a, key, cost)
	switch {
	case a.Decision.Failed:
		g.withoutStore(r, a)
	case a.Err != nil:
		g.failed(r, a)
	}
	if a.Outcome != Admitted || a.Decision.Allowed {
		return
	}
	a.Outcome = Denied
	if a.Decision.RetryAfter == weir.Never {
		a.Outcome = Excessive
	}
}

// takeOf asks one limiter, and notes the limit that it decided by. The error is also that of a store
// without which the limiter decided.
func (g *Gate) takeOf(l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	a.under = g.limitOf(l)
	ctx, cause := r.Context(), (*error)(nil)
	if g.opts.OnStoreError != store.Deny {
		cause = new(error)
		ctx = store.WithOnError(decide.WithCause(ctx, cause), g.opts.OnStoreError)
	}
	err := g.ask(ctx, l, r, a, key, cost)
	if err == nil && a.Decision.Limit != a.under.capacity { // it has changed since
		a.under = g.limitOf(l)
	}
	if err == nil && cause != nil {
		err = *cause
	}
	return err
}

// ask asks one limiter, in the way that what is taken can be settled, if it is to be.
func (g *Gate) ask(ctx context.Context, l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) (err error) {
	switch algorithm := a.under.limit.Algorithm; {
	case algorithm == "":
		return errNoLimit
	case algorithm == weir.Concurrent || algorithm == weir.LeakyQueue && g.opts.Charge == nil:
		return g.reserve(ctx, l, r, a, key, cost)
	case g.opts.Charge != nil:
		return g.hold(ctx, l, r, a, key, cost)
	}
	a.Decision, err = l.Take(ctx, key, cost)
	return err
}

// reserve takes a lease, or a turn.
func (g *Gate) reserve(ctx context.Context, l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	reservation, err := l.Reserve(ctx, key, cost)
	if err != nil {
		return err
	}
	a.Decision = reservation.Decision
	switch length := reservation.Lease(); { // not l.Limit(), which may have changed since
	case !a.Decision.Allowed || cost == 0:
	case length > 0:
		a.held = newHeld(g, r, a.Decision.Delay, &lease{reservation})
		a.held.renewEvery(length) //nolint:contextcheck // for as long as the request is served, whatever becomes of its context
	case a.Decision.Delay > 0:
		a.held = newHeld(g, r, a.Decision.Delay, &turn{reservation})
	}
	return nil
}

// hold takes an estimate.
func (g *Gate) hold(ctx context.Context, l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	h, err := l.Hold(ctx, key, cost, g.opts.Hold)
	if err != nil {
		return err
	}
	if a.Decision = h.Decision; a.Decision.Allowed {
		a.held = newHeld(g, r, a.Decision.Delay, &estimate{h})
		a.held.renewEvery(g.opts.Hold) //nolint:contextcheck // as in reserve
	}
	return nil
}

// failed is for a request for which the limiter returned an error.
func (g *Gate) failed(r *http.Request, a *Admission) {
	var negative *weir.CostError
	switch ended := r.Context().Err(); {
	case errors.As(a.Err, &negative):
		a.Outcome = Invalid
		return
	case ended != nil:
		a.Outcome, a.Err = Gone, ended
		return
	}
	g.warn(undecided, "no decision could be made", a.Err)
	a.Outcome, a.Decision = Undecided, weir.Decision{RetryAfter: retryAfterFailure}
}

// withoutStore is for a request that was decided without the store.
func (g *Gate) withoutStore(r *http.Request, a *Admission) {
	if ended := r.Context().Err(); ended != nil {
		if a.held != nil {
			a.held.giveBack() //nolint:contextcheck // it is done although the context has ended
		}
		a.Outcome, a.Err, a.held = Gone, ended, nil
		return
	}
	if a.Err == nil {
		a.Err = errWithoutStore
	}
	g.warn(undecided, "the store failed, and requests are decided without it", a.Err)
}
