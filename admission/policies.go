package admission

import (
	"errors"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// check has the policies decide.
func (g *Gate) check(r *http.Request, a *Admission) {
	a.gate = g
	request := g.request(r)
	d, err := g.set.Check(r.Context(), &request)
	a.Decision, a.each, a.Err = d.Decision, d.Each, d.Err
	if err != nil {
		g.unchecked(r, a, err)
		return
	}
	if d.Err != nil && r.Context().Err() != nil {
		g.unchecked(r, a, d.Err)
		if d.Token != "" {
			newHeld(g, r, 0, &token{g.set, d.Token}).giveBack() //nolint:contextcheck // it is done although the context has ended
		}
		return
	}
	if d.Err != nil {
		g.warn(undecided, "no decision could be made; policies do as they say for that", d.Err)
	}
	if !d.Allowed {
		a.Outcome = refusal(d.Each)
	}
	if d.Token == "" && d.Delay == 0 {
		return
	}
	a.held = newHeld(g, r, d.Delay, &token{g.set, d.Token})
	shortest := leaseOf(d.Each)
	if g.opts.Charge != nil && d.Token != "" && (shortest == 0 || g.opts.Hold < shortest) {
		shortest = g.opts.Hold // the estimate's
	}
	if shortest > 0 {
		a.held.renewEvery(shortest) //nolint:contextcheck // as in reserve
	}
}

// unchecked is for a request on which the policies did not decide.
func (g *Gate) unchecked(r *http.Request, a *Admission, err error) {
	a.Err, a.Outcome = err, Undecided
	var wrong *policy.RequestError
	switch ended := r.Context().Err(); {
	case errors.As(err, &wrong):
		a.Outcome = Invalid
		return
	case ended != nil:
		a.Outcome, a.Err = Gone, ended
		return
	}
	a.Decision.RetryAfter = retryAfterFailure
	g.warn(undecided, "no decision could be made", err)
}

// refusal is the outcome of a request that was denied. What is certain counts before what the store did not know.
func refusal(each []policy.LimitDecision) Outcome {
	outcome := Undecided
	for i := range each {
		switch d := &each[i]; {
		case d.Allowed || d.Role != policy.Enforced || d.Failed && !d.Local:
		case d.Limit == weir.Limit{}:
			return Forbidden
		case d.RetryAfter == weir.Never:
			outcome = Excessive
		case outcome == Undecided:
			outcome = Denied
		}
	}
	return outcome
}

// leaseOf returns the shortest lease among those that a request may hold, or 0.
func leaseOf(each []policy.LimitDecision) (shortest time.Duration) {
	for i := range each {
		d := &each[i]
		if d.Limit.Algorithm == weir.Concurrent && d.Allowed && (shortest == 0 || d.Limit.Period < shortest) {
			shortest = d.Limit.Period
		}
	}
	return shortest
}

// one is what a request costs that does not say.
var one int64 = 1

// request is what policies look at.
func (g *Gate) request(r *http.Request) policy.Request {
	p := policy.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery, Header: r.Header, ClientIP: g.opts.ClientIP.Addr(r),
	}
	if g.opts.Cost != nil {
		cost := g.opts.Cost(r)
		p.Cost = &cost
	}
	if g.opts.Charge != nil {
		p.Hold, p.Estimate = g.opts.Hold, &one
	}
	if len(g.opts.Attributes) > 0 {
		p.Attributes = make(map[string]string, len(g.opts.Attributes))
		for name, source := range g.opts.Attributes {
			if value := source.Value(r); value != "" {
				p.Attributes[name] = value
			}
		}
	}
	return p
}
