package admission

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// Limits are what a request must pass: a limiter, or a set of policies.
type Limits interface{ *weir.Limiter | *policy.Set }

// A Gate lets requests pass, or not. It may be used by many goroutines at once.
type Gate struct {
	opts    Options
	limiter *weir.Limiter // nil: set decides
	set     *policy.Set
}

// New returns a Gate. It refuses, as an *OptionError, what makes no sense.
func New[L Limits](limits L, opts Options) (*Gate, error) {
	g := &Gate{opts: opts}
	switch l := any(limits).(type) {
	case *weir.Limiter:
		if g.limiter = l; l == nil {
			return nil, &OptionError{"limits", "a nil *weir.Limiter", "what weir.New returned"}
		}
	case *policy.Set:
		if g.set = l; l == nil {
			return nil, &OptionError{"limits", "a nil *policy.Set", "what policy.New returned"}
		}
	}
	if g.opts.Key == nil {
		g.opts.Key = identity.Key{opts.ClientIP.Source()}
	}
	return g, g.opts.Key.Err()
}

// An OptionError says which of the Options can't be had, and what would do.
type OptionError struct{ Field, Value, Accept string }

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("admission: %s is %s; accepted: %s", e.Field, e.Value, e.Accept)
}

// An Outcome is what is to become of a request.
type Outcome uint8

const (
	// Admitted requests are to be served.
	Admitted Outcome = iota
	// Skipped requests are to be served, and there is nothing to tell of limits.
	Skipped
	// Denied requests may pass later, after Decision.RetryAfter.
	Denied
	// Excessive requests cost more than a limit's capacity, and never pass.
	Excessive
	// Forbidden requests are those of a client whose plan is deny.
	Forbidden
	// Undecided requests are refused because the store could not decide.
	Undecided
	// Invalid requests make no sense: they say a cost that is none.
	Invalid
	// Gone requests are those whose context has ended: nobody waits for the answer.
	Gone
)

// Pass reports whether the request is to be served.
func (o Outcome) Pass() bool { return o <= Skipped }

// An Admission is the answer to a request, and what the request holds until Finish.
type Admission struct {
	Outcome  Outcome
	Decision weir.Decision // of all limits together
	Err      error         // of an Invalid request a *policy.RequestError or a *weir.CostError, of others the store's, if it failed. Not for clients

	gate  *Gate
	limit *weir.Limiter
	each  []policy.LimitDecision
}

// Admit decides on a request. What it passes must be given to Finish, whatever happens to it.
func (g *Gate) Admit(r *http.Request) Admission {
	a := Admission{gate: g, limit: g.limiter}
	if g.opts.Skip != nil && g.opts.Skip(r) {
		a.Outcome = Skipped
		return a
	}
	if g.set != nil {
		d, err := g.set.Check(r.Context(), g.request(r))
		a.Decision, a.each, a.Err = d.Decision, d.Each, errors.Join(err, d.Failed)
	} else {
		cost := int64(1)
		if g.opts.Cost != nil {
			cost = g.opts.Cost(r)
		}
		a.Decision, a.Err = a.limit.Take(r.Context(), g.opts.Key.Of(r), cost)
	}
	switch {
	case a.Err != nil:
		a.Outcome = Undecided
	case a.Decision.RetryAfter == weir.Never:
		a.Outcome = Excessive
	case !a.Decision.Allowed:
		a.Outcome = Denied
	}
	return a
}

func (g *Gate) request(r *http.Request) *policy.Request {
	return &policy.Request{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, RawQuery: r.URL.RawQuery, Header: r.Header, ClientIP: g.opts.ClientIP.Addr(r),
	}
}

// A Standing is what stands for one limit.
type Standing struct {
	Name     string // as clients are told
	Limit    weir.Limit
	Decision weir.Decision
}

// Each is what stands for each limit that is enforced, in the order of the configuration.
func (a *Admission) Each() iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		if a.each == nil && a.limit != nil {
			yield(Standing{a.gate.name(a.limit), a.limit.Limit(), a.Decision})
			return
		}
		for i := range a.each {
			if d := &a.each[i]; d.Role == policy.Enforced && !yield(Standing{d.Policy, d.Limit, d.Decision}) {
				return
			}
		}
	}
}

func (g *Gate) name(l *weir.Limiter) string {
	if g.opts.Name != "" {
		return g.opts.Name
	}
	return l.Limit().String()
}

// Await waits for the turn of a request that a leaky queue has admitted. If ctx ends first the turn is given up, and the error is that of ctx.
func (a *Admission) Await(ctx context.Context) error {
	if a.Decision.Delay <= 0 {
		return nil
	}
	timer := time.NewTimer(a.Decision.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Finish settles what the request holds: its leases are given back, and what it cost is charged. It does its work also when the request's context has ended.
func (a *Admission) Finish(Response) {}
