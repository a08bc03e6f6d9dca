package admission

import (
	"iter"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// An Admission is the decision on a request, and the units that the request holds until Finish.
// Copies of it are of one request: a settlement of one of them settles all.
type Admission struct {
	Outcome  Outcome
	Decision weir.Decision // of all limits together; Failed if the store failed, and Local if this process decided alone
	// Err is a *policy.RequestError or a *weir.CostError of an Invalid request, that of the context
	// of one that is Gone, and otherwise that of the store if it failed, also if the request passes
	// all the same. It is not for clients.
	Err error

	bound *store.Bound           // of a limiter that decided; nil: policies decided, or there is no decision
	name  string                 // of the limiter, as clients see it
	each  []policy.LimitDecision // of policies
	held  *held                  // nil: nothing
}

// A Standing is the decision on one limit.
type Standing struct {
	Name     string // as clients see it: 1 or more of the characters from space to ~
	Limit    weir.Limit
	Decision weir.Decision
}

// Each yields each limit that is enforced, in the order of the configuration. Limits that denied are
// those whose Decision is not Allowed. It leaves out limits without a decision, because the store
// failed or was not called, and plans without limits.
func (a *Admission) Each() iter.Seq[Standing] {
	return func(yield func(Standing) bool) { a.standings(yield) } // and not a.standings: it would be allocated
}

func (a *Admission) standings(yield func(Standing) bool) {
	if a.bound != nil {
		if d := a.decisionUnder(); !d.Failed || d.Local {
			yield(Standing{a.name, a.bound.Limit, d})
		}
		return
	}
	for i := range a.each {
		d := &a.each[i]
		if d.Role != policy.Enforced || d.Limit == (weir.Limit{}) || d.Failed && !d.Local {
			continue
		}
		if !yield(Standing{d.Name, d.Limit, d.Decision}) {
			return
		}
	}
}

// decisionUnder returns the Decision under the bound. If the limit has changed more than once since,
// no more remains than its capacity.
func (a *Admission) decisionUnder() weir.Decision {
	d := a.Decision
	if d.Limit != a.bound.Capacity {
		d.Limit, d.Remaining = a.bound.Capacity, min(d.Remaining, a.bound.Capacity)
	}
	return d
}

// Violated yields the names of the limits that denied the request, as Each has them; for a plan that
// is deny, the name of the policy.
func (a *Admission) Violated() iter.Seq[string] {
	return func(yield func(string) bool) { a.violated(yield) }
}

func (a *Admission) violated(yield func(string) bool) {
	if a.bound != nil {
		if !a.Decision.Allowed {
			yield(a.name)
		}
		return
	}
	for i := range a.each {
		if d := &a.each[i]; denies(d) && (!d.Failed || d.Local) && !yield(d.Name) {
			return
		}
	}
}

// denies reports whether an enforced limit denied.
func denies(d *policy.LimitDecision) bool { return d.Role == policy.Enforced && !d.Allowed }
