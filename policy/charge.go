package policy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// cost is what the limit is charged: of one of concurrency it is the one request.
func (c *checking) cost(k *claim) int64 {
	cost := c.policies[k.of].cost
	if k.bound.Limit.Algorithm != algorithm.Concurrent {
		return cost
	}
	if cost == 0 && c.id == 0 {
		return 0
	}
	return 1
}

func (c *checking) part(k *claim) store.Part {
	p := k.bound.Part(c.policies[k.of].key, c.cost(k))
	if c.id != 0 && !c.denied && k.bound.Limit.Algorithm != algorithm.Concurrent {
		p.ID, p.Life = c.id, int64(c.request.Hold)
	}
	return p
}

// enforce decides the enforced limits together.
func (c *checking) enforce(ctx context.Context, d *Decision) error {
	charge, some := true, false
	for i := range c.claims {
		if k := &c.claims[i]; k.role == Enforced {
			some = true
			charge = charge && (k.bound != nil || !c.policies[k.of].group.deny)
		}
	}
	if !some {
		return nil
	}
	if err := c.fits(c.claims, Enforced); err != nil {
		return err
	}
	err := c.charge(ctx, c.claims, Enforced, charge)
	switch {
	case err == nil:
		return nil
	case !store.IsFailure(ctx, err):
		return cmp.Or(ctx.Err(), err)
	}
	d.Err = err
	c.withoutStore(ctx, c.claims, Enforced, true, err)
	return nil
}

// withoutStore decides the limits of a role after the store has failed with cause, each as its
// policy's on_store_error sets.
func (c *checking) withoutStore(ctx context.Context, claims []claim, role Role, charge bool, cause error) {
	var parts []store.Part
	var bounds []*store.Bound
	var places []int
	for i := range claims {
		k := &claims[i]
		switch {
		case k.role != role:
			continue
		case k.bound == nil:
			charge = charge && k.d.Allowed
			continue
		}
		b, err := decide.Without(ctx, k.bound, store.OnErrorOf(ctx, k.bound.OnError), cause)
		if err != nil {
			k.failClosed()
			charge = false
			continue
		}
		p := c.part(k)
		p.Store, p.Binding, p.Limit, p.Name = b.Store, b.Binding, b.Limit, b.Name
		parts, bounds, places = append(parts, p), append(bounds, b), append(places, i)
	}
	outcomes, err := takeOrLook(ctx, parts, c.now, charge)
	if err != nil { // the states of one key are full
		for _, place := range places {
			claims[place].failClosed()
		}
		return
	}
	passed := charge && allGranted(outcomes)
	for i, place := range places {
		k, b := &claims[place], bounds[i]
		k.d.Decision, k.d.Cost = b.Decision(outcomes[i].Verdict), parts[i].Cost
		if passed && b.Local {
			c.hold(k, parts[i], outcomes[i], true)
		}
	}
}

// failClosed denies because the store failed.
func (k *claim) failClosed() {
	k.d.Decision = weir.Decision{Limit: k.bound.Capacity, RetryAfter: retryAfterFailure, Failed: true}
}

// charge decides the limits of a role together, and writes what stands for each. If they are not to be charged that is what would become of them. On an
// error it writes nothing.
func (c *checking) charge(ctx context.Context, claims []claim, role Role, charge bool) error {
	limits, last := 0, (*claim)(nil)
	for i := range claims {
		if k := &claims[i]; k.role == role && k.bound != nil {
			limits, last = limits+1, k
		}
	}
	switch {
	case limits == 0:
		return nil
	case limits == 1 && charge && c.id == 0 && last.bound.Limit.Algorithm != algorithm.Concurrent:
		return c.chargeOne(ctx, last)
	}
	return c.chargeAll(ctx, claims, role, charge)
}

// chargeOne is charge of one limit, that holds nothing.
func (c *checking) chargeOne(ctx context.Context, k *claim) error {
	v, err := k.bound.Do(ctx, k.d.Key, algorithm.Op{Kind: algorithm.Take, Cost: k.d.Cost}, c.now)
	if err != nil {
		return err
	}
	k.d.Decision = v.Decision(k.bound.Capacity)
	return nil
}

func (c *checking) chargeAll(ctx context.Context, claims []claim, role Role, charge bool) error {
	var fewParts [4]store.Part
	var fewPlaces [4]int
	parts, places := fewParts[:0], fewPlaces[:0]
	for i := range claims {
		if k := &claims[i]; k.role == role && k.bound != nil {
			parts, places = append(parts, c.part(k)), append(places, i)
		}
	}
	outcomes, err := takeOrLook(ctx, parts, c.now, charge)
	if err != nil {
		return err
	}
	passed := charge && allGranted(outcomes)
	for i, place := range places {
		k := &claims[place]
		k.d.Decision, k.d.Cost = outcomes[i].Decision(k.bound.Capacity), parts[i].Cost
		if passed {
			c.hold(k, parts[i], outcomes[i], false)
		}
	}
	return nil
}

// takeOrLook charges the parts together, or returns what would become of each by itself.
func takeOrLook(ctx context.Context, parts []store.Part, now int64, charge bool) ([]store.Outcome, error) {
	if charge {
		return store.TakeAll(ctx, parts, now)
	}
	return lookAll(ctx, parts, now)
}

func allGranted(outcomes []store.Outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o store.Outcome) bool { return o.Granted < 0 })
}

// quietly decides limits that never deny, of one policy. They are charged if the others let the request pass. Once the store has failed it is
// not asked again: the answer would have to wait for it each time.
func (c *checking) quietly(ctx context.Context, d *Decision, from, to int, charge bool) {
	claims := c.claims[from:to]
	a := &c.policies[claims[0].of]
	switch {
	case d.Err != nil: // it is counted for all policies
	case c.unasked || c.fits(claims, claims[0].role) != nil:
		a.failed = true
	default:
		err := c.charge(ctx, claims, claims[0].role, charge)
		if err == nil {
			return
		}
		c.unasked, a.failed = true, true
		c.set.warnUndecided(a.name, err)
	}
	for i := range claims {
		claims[i].left = true
	}
}

// warnUndecided logs at most once a second: while a store is away, every request fails. It is silent about an open circuit,
// which the owner of the store logs when it opens.
func (s *Set) warnUndecided(policy string, err error) {
	if store.IsCircuitOpen(err) {
		return
	}
	now, last := time.Now().Unix(), s.warnedAt.Load()
	if now != last && s.warnedAt.CompareAndSwap(last, now) {
		s.log.Warn("limits that are not enforced were not decided", "policy", policy, "error", store.WithoutKeys(err))
	}
}

// describe writes what is known of a claim before it is decided.
func (c *checking) describe(k *claim) {
	a, d := &c.policies[k.of], k.d
	d.Policy, d.Name, d.Plan, d.Key, d.Cost, d.Role, d.rule = a.name, k.name(a), a.group.plan, a.key, a.cost, k.role, a.rule
	switch {
	case k.bound != nil:
		d.Limit = k.bound.Limit
	case a.group.unlimited:
		d.Allowed = true
	default:
		d.RetryAfter = weir.Never
	}
}

// name is what the limit is called where only names are told. Its state's name is policy/limit, and a policy's name has no /.
func (k *claim) name(a *applied) string {
	if k.bound == nil || k.role != Candidate && len(a.group.limits) == 1 {
		return a.name
	}
	return k.bound.Name
}

// fits reports whether what would be held of the limits of a role fits into a token.
func (c *checking) fits(claims []claim, role Role) error {
	size, number := 0, len(*c.held)
	for i := range claims {
		if k := &claims[i]; k.role == role && k.bound != nil && (c.id != 0 || k.bound.Limit.Algorithm == algorithm.Concurrent) {
			size += len(k.bound.Name) + len(c.policies[k.of].key) + maxHoldingRest
			number++
		}
	}
	for _, h := range *c.held {
		size += h.size()
	}
	switch {
	case number > maxHoldings:
		return &RequestError{"what is held", fmt.Sprintf("%d limits", number), fmt.Sprintf("up to %d, in all policies that match the request together", maxHoldings)}
	case size > maxTokenBytes:
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
