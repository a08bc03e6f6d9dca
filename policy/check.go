package policy

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
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

// cost is what the limit is charged: of one of concurrency it is the one request.
func (c *checking) cost(k *claim) int64 {
	if k.bound.limit.Algorithm != algorithm.Concurrent {
		return k.of.cost
	}
	if k.of.cost == 0 && c.id == 0 {
		return 0
	}
	return 1
}

func (c *checking) part(k *claim, local bool) store.Part {
	p := store.Part{Store: c.set.store, Binding: k.bound.binding, Limit: k.bound.limit, Name: k.bound.name, Key: k.of.key, Cost: c.cost(k)}
	if local {
		p.Store, p.Binding = c.set.local, k.bound.local
	}
	if c.id != 0 && k.bound.limit.Algorithm != algorithm.Concurrent {
		p.ID, p.Life = c.id, int64(c.request.Hold)
	}
	return p
}

// enforce decides the enforced limits together.
func (c *checking) enforce(ctx context.Context, claims []claim) ([]LimitDecision, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	if err := c.fits(claims); err != nil {
		return nil, err
	}
	each, err := c.charge(ctx, claims, !slices.ContainsFunc(claims, func(k claim) bool { return k.bound == nil && k.of.group.deny }), false)
	if err == nil {
		return each, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	c.decided.Failed = err
	return c.withoutStore(ctx, claims), nil
}

// withoutStore decides as the policies say that the store could not.
func (c *checking) withoutStore(ctx context.Context, claims []claim) []LimitDecision {
	each := make([]LimitDecision, len(claims))
	var locals []claim
	var places []int
	charge := true
	for i := range claims {
		k := &claims[i]
		d := k.decision()
		switch {
		case k.bound == nil:
			charge = charge && d.Allowed
		case k.of.onError == errorLocal:
			locals, places = append(locals, *k), append(places, i)
		case k.of.onError == errorAllow:
			d.Decision = weir.Decision{Allowed: true, Limit: k.bound.capacity, Remaining: k.bound.capacity}
		default:
			d.Decision = weir.Decision{Limit: k.bound.capacity, RetryAfter: retryAfterFailure}
			charge = false
		}
		each[i] = d
	}
	decided, err := c.charge(ctx, locals, charge, true)
	for i, place := range places {
		if err != nil { // which memory does not do, but for a state that is full
			each[place].Decision = weir.Decision{Limit: locals[i].bound.capacity, RetryAfter: retryAfterFailure}
			continue
		}
		each[place] = decided[i]
	}
	return each
}

// charge decides limits together. If they are not to be charged it returns what stands for each.
func (c *checking) charge(ctx context.Context, claims []claim, charge, local bool) ([]LimitDecision, error) {
	each := make([]LimitDecision, len(claims))
	parts, places := make([]store.Part, 0, len(claims)), make([]int, 0, len(claims))
	for i := range claims {
		each[i] = claims[i].decision()
		if claims[i].bound != nil {
			parts, places = append(parts, c.part(&claims[i], local)), append(places, i)
		}
	}
	if len(parts) == 0 {
		return each, nil
	}
	var outcomes []store.Outcome
	var err error
	if charge {
		outcomes, err = store.TakeAll(ctx, parts, c.now)
	} else {
		outcomes, err = lookAll(ctx, parts, c.now)
	}
	if err != nil {
		return nil, err
	}
	passed := charge && !slices.ContainsFunc(outcomes, func(o store.Outcome) bool { return o.Granted < 0 })
	for i, place := range places {
		k := &claims[place]
		each[place].Decision = outcomes[i].Decision(k.bound.capacity)
		each[place].Cost, each[place].Local = parts[i].Cost, local
		if passed {
			c.hold(k, parts[i], outcomes[i], local)
		}
	}
	return each, nil
}

// quietly decides limits that never deny, of one policy. They are charged if the others let the request pass. Once the store has failed it is
// not asked again: the answer would have to wait for it each time.
func (c *checking) quietly(ctx context.Context, claims []claim, charge bool) []LimitDecision {
	if c.decided.Failed != nil || len(claims) == 0 { // the failure is counted for all policies
		return nil
	}
	if c.unasked || c.fits(claims) != nil {
		claims[0].of.failed = true
		return nil
	}
	if slices.ContainsFunc(claims, func(k claim) bool { return k.bound == nil && k.of.group.deny }) {
		charge = false
	}
	each, err := c.charge(ctx, claims, charge, false)
	if err != nil {
		c.unasked, claims[0].of.failed = true, true
		c.set.warnUndecided(claims[0].of.name, err)
	}
	return each
}

// warnUndecided logs at most once a second: while a store is away, every request fails.
func (s *Set) warnUndecided(policy string, err error) {
	now, last := time.Now().Unix(), s.warnedAt.Load()
	if now != last && s.warnedAt.CompareAndSwap(last, now) {
		s.log.Warn("limits that are not enforced were not decided", "policy", policy, "error", err)
	}
}

// decision returns what is known of a claim before it is decided.
func (k *claim) decision() LimitDecision {
	d := LimitDecision{Policy: k.of.name, Plan: k.of.group.plan, Key: k.of.key, Cost: k.of.cost, Role: k.role}
	switch {
	case k.bound != nil:
		d.Limit = k.bound.limit
	case k.of.group.unlimited:
		d.Allowed = true
	default:
		d.RetryAfter = weir.Never
	}
	return d
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

// fits reports whether what would be held fits into a token.
func (c *checking) fits(claims []claim) error {
	size := 0
	for _, h := range c.held {
		size += h.size()
	}
	for i := range claims {
		if k := &claims[i]; k.bound != nil && (c.id != 0 || k.bound.limit.Algorithm == algorithm.Concurrent) {
			size += len(k.bound.name) + len(k.of.key) + maxHoldingRest
		}
	}
	if size > maxTokenBytes {
		return &RequestError{"what is held", fmt.Sprintf("%d bytes", size), fmt.Sprintf("limits and keys of up to %d bytes together", maxTokenBytes)}
	}
	return nil
}

// newID returns a reservation's ID, which is not 0.
func newID() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]) | 1)
}
