package admission

import (
	"iter"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
)

// An Outcome is what is to become of a request.
type Outcome uint8

const (
	// Admitted requests are to be served.
	Admitted Outcome = iota
	// Skipped requests are to be served, and there is nothing to tell of limits.
	Skipped
	// Denied requests may pass later, after Decision.RetryAfter. If what denied are concurrent limits alone, that is at most a second: when a place is free nobody knows.
	Denied
	// Excessive requests cost more than a limit's capacity, and never pass.
	Excessive
	// Forbidden requests are those of a client whose plan is deny.
	Forbidden
	// Undecided requests are refused because the store could not decide. Decision.RetryAfter is a guess.
	Undecided
	// Invalid requests make no sense: they say a cost that is none.
	Invalid
	// Gone requests are those whose context has ended: nobody waits for the answer.
	Gone
)

// Pass reports whether the request is to be served.
func (o Outcome) Pass() bool { return o <= Skipped }

// String returns the outcome's name, in lower case.
func (o Outcome) String() string {
	all := [...]string{"admitted", "skipped", "denied", "excessive", "forbidden", "undecided", "invalid", "gone"}
	if int(o) >= len(all) {
		return "unknown"
	}
	return all[o]
}

// An Admission is the answer to a request, and what the request holds until Finish. Copies of it are of one request: what one of them settles is settled.
type Admission struct {
	Outcome  Outcome
	Decision weir.Decision // of all limits together; Failed if the store failed, and Local if this process decided alone
	// Err is a *policy.RequestError or a *weir.CostError of an Invalid request, that of the context of one that is Gone, and of others the store's, if it failed,
	// also if they pass all the same. It is not for clients.
	Err error

	gate  *Gate
	limit *weir.Limiter          // that decided, or would have if the store had
	under *named                 // its limit then
	each  []policy.LimitDecision // of policies
	held  *held                  // nil: nothing
}

// A Standing is what stands for one limit.
type Standing struct {
	Name     string // as clients are told: 1 or more of the characters from space to ~
	Limit    weir.Limit
	Decision weir.Decision
}

// Each is what stands for each limit that is enforced, in the order of the configuration. Limits that denied are those whose Decision is not Allowed. A limit of which nothing is known, because the
// store failed or was not asked, is not among them, nor is a plan that has no limits.
func (a *Admission) Each() iter.Seq[Standing] {
	return func(yield func(Standing) bool) { a.standings(yield) } // and not a.standings: it would be allocated
}

func (a *Admission) standings(yield func(Standing) bool) {
	if a.limit != nil && a.tells() {
		yield(Standing{a.name(), a.under.limit, a.decisionUnder()})
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

// decisionUnder is the Decision as one of the limit that is told of. If that has changed more than once in the meantime no more remains than it has.
func (a *Admission) decisionUnder() weir.Decision {
	d := a.Decision
	if d.Limit != a.under.capacity {
		d.Limit, d.Remaining = a.under.capacity, min(d.Remaining, a.under.capacity)
	}
	return d
}

// tells reports whether the Decision is that of a limiter.
func (a *Admission) tells() bool {
	return a.Outcome <= Excessive && a.Outcome != Skipped && (!a.Decision.Failed || a.Decision.Local)
}

// Violated is what denied the request, by the names of Each; a plan that is deny has its policy's.
func (a *Admission) Violated() iter.Seq[string] {
	return func(yield func(string) bool) { a.violated(yield) }
}

func (a *Admission) violated(yield func(string) bool) {
	if a.limit != nil && a.tells() && !a.Decision.Allowed {
		yield(a.name())
		return
	}
	for i := range a.each {
		d := &a.each[i]
		if d.Role == policy.Enforced && !d.Allowed && (!d.Failed || d.Local) && !yield(d.Name) {
			return
		}
	}
}

// Held reports whether the request holds anything: a lease, an estimate of its cost, or a turn. If not, Finish and Await do nothing, and need not be called.
func (a *Admission) Held() bool { return a.held != nil }
