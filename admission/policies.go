package admission

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// check has the policies decide. It reports whether there is a decision; the error is also that of a
// store in place of which the policies decided.
func (g *Gate) check(r *http.Request, client netip.Addr, a *Admission) (decided bool) {
	request := g.request(r, client)
	d, err := g.set.Check(r.Context(), &request)
	if err != nil {
		a.Err = err
		return false
	}
	a.Decision, a.each, a.Err = d.Decision, d.Each, d.Err
	if d.Token != "" || d.Delay > 0 && d.Allowed {
		shortest := leaseOf(d.Each)
		if g.opts.Charge != nil && (shortest == 0 || g.opts.Hold < shortest) {
			shortest = g.opts.Hold // the estimate's
		}
		if d.Token == "" {
			shortest = 0
		}
		g.hold(r, a, &token{g.set, d.Token}, shortest)
	}
	return true
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

// one is the cost of a request that states none.
var one int64 = 1

// request returns the request as the policies see it.
func (g *Gate) request(r *http.Request, client netip.Addr) policy.Request {
	p := policy.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery, Header: r.Header, ClientIP: client,
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
