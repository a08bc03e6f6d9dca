package algorithm_test

import "math/big"

// finch follows the clauses of Tony Finch's hybrid quota-linear rate limiter ("hqlr", dotat.at, 2026-01-12) in their order,
// with the bucket as a rational. Its quota of one request is a cost here: a cost that is the whole bucket of a
// bursty client is its last token, and a cost above the bucket is denied.
type finch struct {
	quota, window *big.Rat
	bucket, time  *big.Rat // nil: no client
	smooth        bool
}

// try is the pseudocode; it says whether the request is allowed, and changes the client even if it is not.
func (c *finch) try(at, cost int64) bool {
	now, price := rat(at), rat(cost)
	reset := func() bool {
		c.bucket, c.time, c.smooth = sub(c.quota, price), now, false
		return true
	}
	rate := new(big.Rat).Quo(c.quota, c.window)
	if c.bucket == nil {
		return reset()
	}
	if !c.smooth && atMost(add(c.time, c.window), now) {
		return reset()
	}
	if !c.smooth && c.bucket.Cmp(price) == 0 {
		remaining := sub(add(c.time, c.window), now)
		c.bucket = sub(rat(1), mul(remaining, rate))
		c.time, c.smooth = now, true
		return true
	}
	if c.smooth {
		c.bucket = add(c.bucket, mul(sub(now, c.time), rate))
		c.time = now
	}
	if c.smooth && atMost(c.quota, c.bucket) {
		return reset()
	}
	if atMost(price, c.bucket) {
		c.bucket = sub(c.bucket, price)
		return true
	}
	return false
}

func (c *finch) fits(now, cost int64) answer {
	if less(c.quota, rat(cost)) {
		return no
	}
	client := *c // its rationals are never changed in place
	return is(client.try(now, cost))
}

func (c *finch) admit(now, cost int64) { c.try(now, cost) }

// fresh is whether the next request would be counted as a client's first.
func (c *finch) fresh(now int64) answer {
	switch {
	case c.bucket == nil:
		return yes
	case !c.smooth:
		return is(atMost(add(c.time, c.window), rat(now)))
	}
	rate := new(big.Rat).Quo(c.quota, c.window)
	return is(atMost(c.quota, add(c.bucket, mul(sub(rat(now), c.time), rate))))
}
