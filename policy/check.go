package policy

import (
	"context"
	"slices"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Bounds on a reservation's time.
const (
	minHold = time.Millisecond
	maxHold = 24 * time.Hour
)

// retryAfterFailure is when to come back if the store could not decide, and nobody knows.
const retryAfterFailure = time.Second

// An applied policy is one that matches a request.
type applied struct {
	*rule
	group  *group
	client string
	key    string
	cost   int64
	said   bool // the request itself says its cost
	// wrong is what is wrong with the cost for a policy that enforces nothing: it is left out.
	wrong  error
	failed bool // it was not decided, in part or at all
}

// A claim is one limit that a request is charged for, or why it is not.
type claim struct {
	of    *applied
	bound *bound // nil: the plan is deny or unlimited
	role  Role
}

// Check decides a request. All limits of all policies that match it are charged together, or none is: the decision lists what stands for each.
//
// A candidate is tried on clients that have the default limits. Limits that are not enforced are charged when the request passes all others, as it would be if they were enforced: a policy in shadow mode when no
// enforced policy denies, a candidate when no other policy does. Each policy's are charged together, or none of them.
//
// The error is a [*RequestError] if the request makes no sense, or that of ctx. An error of the store is not one: policies then do as their on_store_error says,
// and Decision.Failed is the error.
func (s *Set) Check(ctx context.Context, r *Request) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if r.Hold != 0 && (r.Hold < minHold || r.Hold > maxHold) {
		return Decision{}, &RequestError{"hold", r.Hold.String(), "0, for none, or " + minHold.String() + " to " + maxHold.String()}
	}
	if err := r.costs(); err != nil {
		return Decision{}, err
	}
	v := s.current.Load()
	policies, err := v.applied(r)
	if err != nil || len(policies) == 0 {
		return Decision{Decision: weir.Decision{Allowed: err == nil}}, err
	}
	c := &checking{set: s, request: r, now: s.now()}
	if r.Hold > 0 {
		c.id = newID()
	}
	return c.decide(ctx, policies)
}

// now is the time to decide at.
func (s *Set) now() int64 {
	if s.clock == nil {
		return store.OwnClock
	}
	if at, ok := store.Nanoseconds(s.clock()); ok {
		return at
	}
	return store.OwnClock
}

// applied returns the policies that match, with what they say about the request.
func (v *rules) applied(r *Request) ([]applied, error) {
	var space [16]int32
	found := v.index.find(r, space[:0])
	if len(found) == 0 {
		return nil, nil
	}
	list := make([]applied, len(found))
	for i, n := range found {
		a := &list[i]
		a.rule = &v.rules[n]
		a.key = a.rule.key.key(r)
		a.group, a.client = v.group(a.rule, r)
		if a.cost, a.said, a.wrong = a.rule.cost.cost(r); a.wrong != nil && a.enforces() {
			return nil, a.wrong
		}
	}
	return list, nil
}

// enforces reports whether the policy can deny the request.
func (a *applied) enforces() bool {
	return a.role == Enforced && (a.group.deny || a.group.unlimited || len(a.group.limits) > 0)
}

// A checking is one request that is being decided.
type checking struct {
	set     *Set
	request *Request
	now     int64
	id      int64 // of the reservation, or 0
	held    []holding
	decided Decision
	// unasked is set when the store failed at limits that are not enforced: it is not asked for more of them.
	unasked bool
}

func (c *checking) decide(ctx context.Context, policies []applied) (Decision, error) {
	var enforced, shadows []claim
	for i := range policies {
		switch a := &policies[i]; {
		case a.wrong != nil:
		case a.role == Shadow:
			shadows = append(shadows, claims(a, a.group, Shadow)...)
		default:
			enforced = append(enforced, claims(a, a.group, Enforced)...)
		}
	}
	each, err := c.enforce(ctx, enforced)
	if err != nil {
		return Decision{}, err
	}
	denied := c.sum(each)
	beside := len(shadows) > 0
	for _, group := range byPolicy(shadows) {
		each = append(each, c.quietly(ctx, group, len(denied) == 0)...)
	}
	for i := range policies {
		a := &policies[i]
		a.counts.checked.Add(1)
		if a.wrong != nil || !a.tries() {
			continue
		}
		beside = true
		others := len(denied) == 0 || len(denied) == 1 && denied[0] == a.name
		each = append(each, c.quietly(ctx, claims(a, a.candidate, Candidate), others)...)
	}
	c.count(policies, each)
	if beside {
		inOrder(policies, each)
	}
	c.decided.Each = each
	if len(c.held) > 0 {
		c.decided.Token = token{id: c.id, held: c.held}.String()
	}
	return c.decided, nil
}

// tries reports whether the policy tries its candidate on the client. It is there instead of the default limits, not of plans.
func (a *applied) tries() bool { return a.candidate != nil && a.group == a.limits }

// inOrder puts what stands for each limit into the order of the policies.
func inOrder(policies []applied, each []LimitDecision) {
	place := make(map[string]int, len(policies))
	for i := range policies {
		place[policies[i].name] = i
	}
	slices.SortStableFunc(each, func(a, b LimitDecision) int { return place[a.Policy] - place[b.Policy] })
}

// claims returns what a group of a policy is charged for.
func claims(a *applied, g *group, role Role) []claim {
	if g.deny || g.unlimited {
		return []claim{{a, nil, role}}
	}
	list := make([]claim, len(g.limits))
	for i, b := range g.limits {
		list[i] = claim{a, b, role}
	}
	return list
}

// byPolicy cuts claims into those of each policy.
func byPolicy(claims []claim) (groups [][]claim) {
	for len(claims) > 0 {
		n := 1
		for n < len(claims) && claims[n].of == claims[0].of {
			n++
		}
		groups, claims = append(groups, claims[:n]), claims[n:]
	}
	return groups
}

// sum makes the decision of the enforced limits together, and returns the policies that denied.
func (c *checking) sum(each []LimitDecision) (denied []string) {
	var list []weir.Decision
	for i := range each {
		d := &each[i]
		if !d.Allowed && (len(denied) == 0 || denied[len(denied)-1] != d.Policy) {
			denied = append(denied, d.Policy)
		}
		if !d.Allowed || d.Limit != (weir.Limit{}) {
			list = append(list, d.Decision)
		}
	}
	c.decided.Decision, c.decided.Denied = algorithm.Together(list), denied
	return denied
}

// count counts the request for each policy.
func (c *checking) count(policies []applied, each []LimitDecision) {
	for i := range policies {
		a := &policies[i]
		if a.wrong != nil {
			a.counts.failed.Add(1)
			continue
		}
		var denied [3]bool // by role
		for j := range each {
			if each[j].Policy == a.name && !each[j].Allowed {
				denied[each[j].Role] = true
			}
		}
		switch {
		case denied[Enforced]:
			a.counts.denied.Add(1)
		case a.role == Enforced:
			a.counts.allowed.Add(1)
		case denied[Shadow]:
			a.counts.shadowDenied.Add(1)
		}
		if denied[Candidate] {
			a.counts.candidateDenied.Add(1)
		}
		if a.failed || c.decided.Failed != nil {
			a.counts.failed.Add(1)
		}
	}
}
