package policy

import (
	"context"
	"errors"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
)

// Bounds on a reservation's time.
const (
	minHold = time.Millisecond
	maxHold = 24 * time.Hour
)

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
	v, now := s.load(), s.now()
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
	q := decide.Request{Now: now, Holdings: &held}
	if r.Hold > 0 {
		q.ID, q.Life = newID(), int64(r.Hold)
	}
	var d Decision
	q.Claims, d.Each = claims(policies, fewClaims[:0])
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
