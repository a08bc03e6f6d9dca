package policy

import (
	"context"
	"errors"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// Bounds on a reservation's time.
const (
	minHold = time.Millisecond
	maxHold = 24 * time.Hour
)

// An applied policy is one that matches a request.
type applied struct {
	*rule
	group  *group
	client string // its name, "" without one
	grant  *Grant // nil for the default limits
	key    string
	cost   int64
	stated bool // the request states its cost
	// wrong is the error of the cost, for a policy that enforces nothing: it is left out.
	wrong error
}

// Check decides a request. All limits of all policies that match it are charged together, or none
// is. The decision lists each limit.
//
// A candidate is tried on clients that have the default limits. Limits that are not enforced are
// charged when the request passes all others, as it would be if they were enforced: a policy in
// shadow mode when no enforced policy denies, a candidate when no other policy does. Each policy's
// are charged together, or none of them. A denied request holds nothing, and has no token: under a
// candidate that would admit the request, rates are charged the cost or estimate at once, and
// leases are given back at once.
//
// The error is a [*RequestError] for an invalid request, or that of ctx. A failure of the store
// (store.IsFailure) is not an error: policies then decide as their on_store_error sets, and
// Decision.Err is the failure.
func (s *Set) Check(ctx context.Context, r *Request) (Decision, error) {
	v := s.load()
	if v == nil {
		return Decision{}, errNoPolicies
	}
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if err := r.check(); err != nil {
		return Decision{}, err
	}
	var fewPolicies [2]applied // on the stack, unless they are stored anywhere
	f := facts{Request: r}
	policies, err := v.applied(&f, fewPolicies[:0])
	if err != nil || len(policies) == 0 {
		return Decision{Decision: weir.Decision{Allowed: err == nil}}, err
	}
	var fewClaims [8]decide.Claim
	var held []decide.Holding
	q := decide.Request{Now: s.now(), Holdings: &held}
	if r.Hold > 0 {
		q.ID, q.Life = newID(), int64(r.Hold)
	}
	var d Decision
	q.Claims, d.Each = claims(policies, q.ID != 0, fewClaims[:0])
	result, err := q.Decide(ctx)
	if err != nil {
		return Decision{}, requestError(err)
	}
	d.Decision, d.Err = result.Decision, result.Err
	if result.Skipped != nil {
		s.warnSkipped(policies[result.SkippedPolicy].name, result.Skipped)
	}
	d.conclude(policies, q.Claims)
	switch {
	case len(held) == 0:
	case d.Allowed:
		d.Token = s.keys.text(token{id: q.ID, life: q.Life, held: held})
	default: // leases of candidates: a denied request holds none
		_, _ = s.settler().Settle(ctx, held, giveBack) // they expire by themselves
	}
	return d, nil
}

// requestError returns the error of a request that would hold too much as a *RequestError.
func requestError(err error) error {
	if size, ok := errors.AsType[*decide.SizeError](err); ok {
		return &RequestError{"what is held", size.Value, size.Accept}
	}
	return err
}

// now returns the time of a decision.
func (s *Set) now() int64 {
	if s.clock == nil {
		return store.OwnClock
	}
	if at, ok := store.Nanoseconds(s.clock()); ok {
		return at
	}
	return store.OwnClock
}

// applied appends the policies that match, with the key, the limits and the cost of the request.
func (v *rules) applied(r *facts, list []applied) ([]applied, error) {
	if err := r.bounds(); err != nil {
		return nil, err
	}
	if len(r.Path) > MaxRegexPath {
		if err := v.index.regexBound(v.rules, r); err != nil {
			return nil, err
		}
	}
	var space [16]int32
	for _, n := range v.index.find(r, space[:0]) {
		a := applied{rule: &v.rules[n]}
		a.key = a.rule.key.key(r)
		if r.May != nil && !r.May(a.name, a.key) {
			return nil, ErrForbidden
		}
		v.findGroup(&a, r)
		if a.cost, a.stated, a.wrong = a.rule.cost.cost(r); a.wrong != nil && a.role == Enforced && !a.group.empty() {
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
