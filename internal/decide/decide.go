package decide

import (
	"cmp"
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Do carries out an operation that takes units under one limit, with its store or in place of it. by
// is the bound that decided, under which the units are settled.
func Do(ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64) (by *store.Bound, v algorithm.Verdict, err error) {
	if v, err = b.Do(ctx, key, op, now); err == nil {
		return b, v, nil
	}
	return Fallback(ctx, b, key, op, now, err)
}

// Fallback is Do for an operation for which the store has returned cause.
func Fallback(
	ctx context.Context, b *store.Bound, key string, op algorithm.Op, now int64, cause error,
) (by *store.Bound, v algorithm.Verdict, err error) {
	if by, err = Without(ctx, b, store.OnErrorOf(ctx, b.OnError), cause); err != nil {
		return nil, v, err
	}
	v, err = by.Do(ctx, key, op, now)
	return by, v, err
}

// RetryAfterFailure is the RetryAfter of a request that could not be decided because the store failed.
const RetryAfterFailure = time.Second

// A Role is the effect of a limit on a request.
type Role uint8

// The roles. Limits that are not enforced are charged if the request passes the others, and never
// deny.
const (
	Enforced  Role = iota // decides
	Shadow                // of a policy in shadow mode: charged if no enforced limit denies
	Candidate             // charged if no enforced limit of a different policy denies
)

// A Claim is one limit that a request is charged for.
type Claim struct {
	Bound    *store.Bound        // nil: a plan without limits, which *Decision allows or denies
	Key      string              // of the state
	Cost     int64               // in units; Decide sets that of a concurrent limit: see setCosts
	Decision *algorithm.Decision // receives the decision
	Policy   int32               // limits of one policy and role are charged together
	Role     Role
	Stated   bool // the request states its cost, so a settlement may change it
	Skipped  bool // the claim was not decided, because the store failed
}

// A Request is a request to be decided.
type Request struct {
	// Claims are in the order of their policies, and the candidate of a policy after its other limits.
	Claims []Claim
	Now    int64 // nanoseconds since the Unix epoch, or store.OwnClock
	// ID and Life make takes reservations, except of concurrent limits. 0: they are takes.
	ID, Life int64
	// Holdings receives the units to settle. It is a pointer because a list that Decide replaced in
	// the Request would put the Claims on the heap.
	Holdings *[]Holding

	denied    bool // by an enforced limit: candidates then reserve nothing
	storeFell bool // the store failed at limits that are not enforced, and is not called again for more
}

// A Result is the decision on a request.
type Result struct {
	// Decision is of all enforced limits: see Sum.
	Decision algorithm.Decision
	// Err is the failure of the store, in place of which the enforced limits were decided.
	Err error
	// Skipped is the first failure of the store for limits that are not enforced, of SkippedPolicy.
	Skipped       error
	SkippedPolicy int32
}

// Decide decides the claims. The enforced limits are charged together, or none of them. If their
// store fails, each is decided as its OnError sets. Then the limits of other roles are charged, those
// of each policy together or none. If their store fails, they are skipped.
//
// The error is that of ctx, a *SizeError, or an error of the store that is no failure. Then nothing
// is charged.
func (r *Request) Decide(ctx context.Context) (d Result, err error) {
	if len(r.Claims) == 1 && r.ID == 0 && r.Claims[0].plain() { // nearly all requests
		k := &r.Claims[0]
		v, err := k.Bound.Do(ctx, k.Key, algorithm.Op{Kind: algorithm.Take, Cost: k.Cost}, r.Now)
		if err == nil {
			v.Read(k.Decision, k.Bound.Capacity)
			d.Decision = *k.Decision
			return d, nil
		}
		if err := r.fell(ctx, &d, err); err != nil {
			return d, err
		}
		d.Decision = *k.Decision
		return d, nil
	}
	r.setCosts(r.Claims)
	if err := r.enforce(ctx, &d); err != nil {
		return d, err
	}
	var denied int32
	d.Decision, denied = Sum(r.Claims)
	r.denied = !d.Decision.Allowed
	r.beside(ctx, &d, Shadow, denied)
	r.beside(ctx, &d, Candidate, denied)
	return d, nil
}

// plain reports whether a claim is a take of an enforced limit that holds nothing.
func (k *Claim) plain() bool {
	return k.Role == Enforced && k.Bound != nil && k.Bound.Limit.Algorithm != algorithm.Concurrent
}

// setCosts sets the costs under concurrent limits: one lease, whatever the request costs. A peek, of
// cost 0, takes no lease, unless the request reserves.
func (r *Request) setCosts(claims []Claim) {
	for i := range claims {
		k := &claims[i]
		if k.Bound != nil && k.Bound.Limit.Algorithm == algorithm.Concurrent && (k.Cost != 0 || r.ID != 0) {
			k.Cost = 1
		}
	}
}

// enforce decides the enforced limits together.
func (r *Request) enforce(ctx context.Context, d *Result) error {
	charge := true
	for i := range r.Claims {
		if k := &r.Claims[i]; k.Role == Enforced {
			charge = charge && (k.Bound != nil || k.Decision.Allowed)
		}
	}
	if err := r.fits(r.Claims, Enforced); err != nil {
		return err
	}
	if err := r.take(ctx, r.Claims, Enforced, charge); err != nil {
		return r.fell(ctx, d, err)
	}
	return nil
}

// fell decides the enforced limits in place of a store that returned cause. It returns an error if
// cause is no failure of the store.
func (r *Request) fell(ctx context.Context, d *Result, cause error) error {
	if !store.IsFailure(ctx, cause) {
		return cmp.Or(ctx.Err(), cause)
	}
	d.Err = cause
	return r.joint(ctx, r.Claims, Enforced, true, cause)
}

// no policy and several policies, as results of Sum.
const (
	none    = -1
	several = -2
)

// Sum returns the decision of the enforced limits together: allowed if all allow, with the least
// Remaining and its Limit, and the greatest RetryAfter of those that deny. denied is the policy that
// denied, none, or several.
func Sum(claims []Claim) (all algorithm.Decision, denied int32) {
	all.Allowed, denied = true, none
	first := true
	for i := range claims {
		k := &claims[i]
		if k.Role != Enforced {
			continue
		}
		if !k.Decision.Allowed && denied != k.Policy {
			if denied != none {
				denied = several
			} else {
				denied = k.Policy
			}
		}
		switch {
		case k.Bound == nil && k.Decision.Allowed: // unlimited
		case first:
			all, first = *k.Decision, false
		default:
			all = algorithm.Together([]algorithm.Decision{all, *k.Decision})
		}
	}
	return all, denied
}

// beside decides the limits of a role that is not enforced, those of each policy together.
func (r *Request) beside(ctx context.Context, d *Result, role Role, denied int32) {
	for from := 0; from < len(r.Claims); {
		k, to := &r.Claims[from], from+1
		for to < len(r.Claims) && r.Claims[to].Policy == k.Policy && r.Claims[to].Role == k.Role {
			to++
		}
		if k.Role == role {
			r.tryOut(ctx, d, r.Claims[from:to], denied == none || role == Candidate && denied == k.Policy)
		}
		from = to
	}
}

// tryOut decides limits of one policy that are not enforced. Once the store has failed it is not
// called again: each call could last until its timeout.
func (r *Request) tryOut(ctx context.Context, d *Result, claims []Claim, charge bool) {
	if d.Err == nil && !r.storeFell && r.fits(claims, claims[0].Role) == nil {
		err := r.take(ctx, claims, claims[0].Role, charge)
		if err == nil {
			return
		}
		r.storeFell, d.Skipped, d.SkippedPolicy = true, err, claims[0].Policy
	}
	for i := range claims {
		claims[i].Skipped = true
	}
}

// Look decides one claim, in a list, as the request would find it, and charges nothing. The error is that of
// Decide.
func (r *Request) Look(ctx context.Context, k []Claim) error {
	r.setCosts(k)
	err := r.take(ctx, k, k[0].Role, false)
	switch {
	case err == nil:
		return nil
	case !store.IsFailure(ctx, err):
		return cmp.Or(ctx.Err(), err)
	}
	return r.joint(ctx, k, k[0].Role, false, err)
}
