package policy

import (
	"context"
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
	client string // its name, "" without one
	grant  *Grant // nil for the default limits
	key    string
	cost   int64
	said   bool // the request itself says its cost
	// wrong is what is wrong with the cost for a policy that enforces nothing: it is left out.
	wrong  error
	failed bool // it was not decided, in part or at all
}

// A claim is one limit that a request is charged for, or why it is not.
type claim struct {
	of    int          // which of the policies that match
	bound *store.Bound // nil: the plan is deny or unlimited
	role  Role
	left  bool           // it was not decided, and is left out
	d     *LimitDecision // where what stands for it is written
}

// Check decides a request. All limits of all policies that match it are charged together, or none is: the decision lists what stands for each.
//
// A candidate is tried on clients that have the default limits. Limits that are not enforced are
// charged when the request passes all others, as it would be if they were enforced: a policy in
// shadow mode when no enforced policy denies, a candidate when no other policy does. Each policy's
// are charged together, or none of them. A denied request holds nothing, and has no token: under a
// candidate that would admit the request, rates are charged the cost or estimate at once, and
// leases are given back at once.
//
// The error is a [*RequestError] if the request makes no sense, or that of ctx. A failure of the store (store.IsFailure) is not one: policies then do as their on_store_error says,
// and Decision.Failed is the error.
func (s *Set) Check(ctx context.Context, r *Request) (Decision, error) {
	v := s.load()
	if v == nil {
		return Decision{}, errNoPolicies
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if r.Hold != 0 && (r.Hold < minHold || r.Hold > maxHold) {
		return Decision{}, &RequestError{"hold", r.Hold.String(), "0, for none, or " + minHold.String() + " to " + maxHold.String()}
	}
	if err := r.costs(); err != nil {
		return Decision{}, err
	}
	var fewPolicies [2]applied // on the stack, as long as nothing of c is stored anywhere but in c
	f := facts{Request: r}
	policies, err := v.applied(&f, fewPolicies[:0])
	if err != nil || len(policies) == 0 {
		return Decision{Decision: weir.Decision{Allowed: err == nil}}, err
	}
	var fewClaims [8]claim
	var held []holding
	c := checking{set: s, request: r, now: s.now(), policies: policies, claims: claims(policies, fewClaims[:0]), held: &held}
	if r.Hold > 0 {
		c.id = newID()
	}
	var d Decision
	if err := c.decide(ctx, &d); err != nil {
		return Decision{}, err
	}
	if !d.Allowed && len(held) > 0 { // leases of candidates: a denied request holds none
		// they expire by themselves
		_, _ = s.endAll(ctx, held, func(*holding) algorithm.Op { return algorithm.Op{} })
		return d, nil
	}
	if len(held) > 0 {
		d.Token = s.keys.text(token{id: c.id, life: int64(r.Hold), held: held})
	}
	return d, nil
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

// applied appends the policies that match, with what they say about the request.
func (v *rules) applied(r *facts, list []applied) ([]applied, error) {
	if err := r.bounds(); err != nil {
		return nil, err
	}
	if err := v.regexBound(r); err != nil {
		return nil, err
	}
	var space [16]int32
	for _, n := range v.index.find(r, space[:0]) {
		a := applied{rule: &v.rules[n]}
		a.key = a.rule.key.key(r)
		if r.May != nil && !r.May(a.name, a.key) {
			return nil, ErrForbidden
		}
		v.findGrant(&a, r)
		a.group = v.findGroup(&a)
		if a.cost, a.said, a.wrong = a.rule.cost.cost(r); a.wrong != nil && a.enforces() {
			return nil, a.wrong
		}
		list = append(list, a)
	}
	if len(r.wrong) > 0 {
		if err := v.enforcedBounds(r.Request); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// regexBound returns an error for a path beyond its bound that an enforced policy would match
// against a regular expression.
func (v *rules) regexBound(r *facts) error {
	if len(r.Path) <= MaxRegexPath {
		return nil
	}
	for i := range v.index.alternatives {
		a := &v.index.alternatives[i]
		if v.rules[a.policy].role == Enforced && a.hasRegex() && a.matches(r) {
			wrong := tooLong("path", len(r.Path), MaxRegexPath, "bytes")
			wrong.Accept += " for a regular expression"
			return wrong
		}
	}
	return nil
}

// enforcedBounds returns an error if an enforced policy reads a part of the request beyond its
// bound. For a policy in shadow mode, which decides nothing, such a part has no values.
func (v *rules) enforcedBounds(request *Request) error {
	r := facts{Request: request}
	for i := range v.index.alternatives {
		a := &v.index.alternatives[i]
		if rule := &v.rules[a.policy]; rule.role == Enforced && a.matchesPath(r.Path) && a.matches(&r) {
			_ = rule.key.key(&r)
			if v.clients != nil {
				_, _ = rule.client.value(&r)
			}
			_, _, _ = rule.cost.cost(&r)
		}
	}
	if len(r.wrong) > 0 {
		return r.wrong[0]
	}
	return nil
}

// enforces reports whether the policy can deny the request.
func (a *applied) enforces() bool {
	return a.role == Enforced && (a.group.deny || a.group.unlimited || len(a.group.limits) > 0)
}

// A checking is one request that is being decided.
type checking struct {
	set      *Set
	request  *Request
	now      int64
	id       int64 // of the reservation, or 0
	policies []applied
	claims   []claim    // in the order of the policies, a candidate's after the others of its policy
	held     *[]holding // and not in here: appending to it would put all of this on the heap
	// unasked is set when the store failed at limits that are not enforced: it is not asked for more of them.
	unasked bool
	// denied is set when the enforced limits deny: a candidate is then charged the estimate, and
	// reserves nothing.
	denied bool
}

// decide writes the decision.
func (c *checking) decide(ctx context.Context, d *Decision) error {
	if len(c.claims) > 0 {
		d.Each = make([]LimitDecision, len(c.claims))
	}
	for i := range c.claims {
		c.claims[i].d = &d.Each[i]
		c.describe(&c.claims[i])
	}
	if err := c.enforce(ctx, d); err != nil {
		return err
	}
	d.Decision, d.Denied = sum(d.Each)
	c.denied = !d.Allowed
	c.beside(ctx, d, Shadow)
	c.beside(ctx, d, Candidate)
	c.count(d)
	c.leaveOut(d)
	return nil
}

// beside decides the limits of a role that never deny, those of each policy by themselves.
func (c *checking) beside(ctx context.Context, d *Decision, role Role) {
	for from := 0; from < len(c.claims); {
		k, to := &c.claims[from], from+1
		for to < len(c.claims) && c.claims[to].of == k.of && c.claims[to].role == k.role {
			to++
		}
		if k.role == role {
			others := len(d.Denied) == 0 || role == Candidate && len(d.Denied) == 1 && d.Denied[0] == c.policies[k.of].name
			c.quietly(ctx, d, from, to, others)
		}
		from = to
	}
}

// leaveOut takes out of the decision what was left out.
func (c *checking) leaveOut(d *Decision) {
	kept := 0
	for i := range c.claims {
		if c.claims[i].left {
			continue
		}
		if kept < i {
			d.Each[kept] = d.Each[i]
		}
		kept++
	}
	if d.Each = d.Each[:kept:kept]; kept == 0 {
		d.Each = nil
	}
}

// tries reports whether the policy tries its candidate on the client. It is there instead of the default limits, not of plans.
func (a *applied) tries() bool { return a.candidate != nil && a.group == a.limits }

// claims appends what the request is charged for.
func claims(policies []applied, list []claim) []claim {
	for i := range policies {
		a := &policies[i]
		if a.wrong != nil {
			continue
		}
		list = a.group.claims(i, a.role, list)
		if a.tries() {
			list = a.candidate.claims(i, Candidate, list)
		}
	}
	return list
}

// claims appends what a group of a policy is charged for.
func (g *group) claims(of int, role Role, list []claim) []claim {
	if g.deny || g.unlimited {
		return append(list, claim{of: of, role: role})
	}
	for _, b := range g.limits {
		list = append(list, claim{of: of, bound: b, role: role})
	}
	return list
}

// sum makes the decision of the enforced limits together, and returns the policies that denied.
func sum(each []LimitDecision) (all weir.Decision, denied []string) {
	all.Allowed = true
	first := true
	for i := range each {
		d := &each[i]
		if d.Role != Enforced {
			continue
		}
		if !d.Allowed && (len(denied) == 0 || denied[len(denied)-1] != d.Policy) {
			denied = append(denied, d.Policy)
		}
		switch {
		case d.Allowed && d.Limit == (weir.Limit{}): // unlimited
		case first:
			all, first = algorithm.Together([]weir.Decision{d.Decision}), false
		default:
			all = algorithm.Together([]weir.Decision{all, d.Decision})
		}
	}
	return all, denied
}

// count counts the request for each policy.
func (c *checking) count(d *Decision) {
	next := 0
	for i := range c.policies {
		a := &c.policies[i]
		a.counts.checked.Add(1)
		var denied [3]bool // by role
		for ; next < len(c.claims) && c.claims[next].of == i; next++ {
			if k := &c.claims[next]; !k.left && !k.d.Allowed {
				denied[k.role] = true
			}
		}
		if a.wrong != nil {
			a.counts.failed.Add(1)
			continue
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
		if a.failed || d.Err != nil {
			a.counts.failed.Add(1)
		}
	}
}
