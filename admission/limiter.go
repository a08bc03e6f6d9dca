package admission

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
)

// retryAfterFailure is when to come back if the store could not decide, and nobody knows.
const retryAfterFailure = time.Second

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
	if a.Err = g.takeOf(l, r, a, key, cost); a.Err != nil {
		g.failed(r, a, key, cost)
	}
	if a.Outcome != Admitted || a.Decision.Allowed {
		return
	}
	a.Outcome = Denied
	if a.Decision.RetryAfter == weir.Never {
		a.Outcome = Excessive
	}
}

// takeOf asks one limiter, and notes the limit that it decided by.
func (g *Gate) takeOf(l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	a.under = g.limitOf(l)
	err := g.ask(l, r, a, key, cost)
	if err == nil && a.Decision.Limit != a.under.capacity { // it has changed since
		a.under = g.limitOf(l)
	}
	return err
}

// ask asks one limiter, in the way that what is taken can be settled, if it is to be.
func (g *Gate) ask(l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) (err error) {
	switch algorithm := a.under.limit.Algorithm; {
	case algorithm == "":
		return errNoLimit
	case algorithm == weir.Concurrent || algorithm == weir.LeakyQueue && g.opts.Charge == nil:
		return g.reserve(l, r, a, key, cost)
	case g.opts.Charge != nil:
		return g.hold(l, r, a, key, cost)
	}
	a.Decision, err = l.Take(r.Context(), key, cost)
	return err
}

// reserve takes a lease, or a turn.
func (g *Gate) reserve(l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	reservation, err := l.Reserve(r.Context(), key, cost)
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
func (g *Gate) hold(l *weir.Limiter, r *http.Request, a *Admission, key string, cost int64) error {
	h, err := l.Hold(r.Context(), key, cost, g.opts.Hold)
	if err != nil {
		return err
	}
	if a.Decision = h.Decision; a.Decision.Allowed {
		a.held = newHeld(g, r, a.Decision.Delay, &estimate{h})
		a.held.renewEvery(g.opts.Hold) //nolint:contextcheck // as in reserve
	}
	return nil
}

// failed decides about a request for which the limiter has an error.
func (g *Gate) failed(r *http.Request, a *Admission, key string, cost int64) {
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
	switch onError := g.opts.OnStoreError; {
	case errors.Is(a.Err, weir.ErrUnnamed), errors.Is(a.Err, errNoLimit): // it is not the store: an Override returned it
	case onError == Allow:
		a.limit, a.Decision = nil, weir.Decision{Allowed: true}
		return
	case onError == Local && g.decideHere(r, a, key, cost) == nil:
		return
	}
	a.Outcome, a.Decision = Undecided, weir.Decision{RetryAfter: retryAfterFailure}
}

// decideHere asks a limiter in this process's memory in place of the one that failed.
func (g *Gate) decideHere(r *http.Request, a *Admission, key string, cost int64) error {
	l, err := g.local.of(a.limit)
	if err != nil {
		return err
	}
	return g.takeOf(l, r, a, key, cost)
}
