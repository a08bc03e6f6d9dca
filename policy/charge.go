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
		d.Failed = k.bound != nil
		each[i] = d
	}
	decided, err := c.charge(ctx, locals, charge, true)
	for i, place := range places {
		if err != nil { // which memory does not do, but for a state that is full
			each[place].Decision = weir.Decision{Limit: locals[i].bound.capacity, RetryAfter: retryAfterFailure}
			continue
		}
		each[place] = decided[i]
		each[place].Failed = true
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
	d := LimitDecision{Policy: k.of.name, Name: k.name(), Plan: k.of.group.plan, Key: k.of.key, Cost: k.of.cost, Role: k.role}
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

// name is what the limit is called where only names are told. Its state's name is policy/limit, and a policy's name has no /.
func (k *claim) name() string {
	if k.bound == nil || k.role != Candidate && len(k.of.group.limits) == 1 {
		return k.of.name
	}
	return k.bound.name
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
