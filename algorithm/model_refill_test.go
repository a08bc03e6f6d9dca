package algorithm_test

import "math/big"

// gridBucket is the refill bucket without running totals: the tokens are the burst, less all that was taken since
// a full bucket was last taken from, plus all the refills since then, counted from there.
type gridBucket struct {
	amount, burst *big.Int
	width         int64
	log           journal // since origin, in refills after it
	origin        int64
}

// refills counts those between origin and now, at least those that were seen by an admitted request.
func (m *gridBucket) refills(now int64) int64 {
	n := new(big.Int).Sub(big.NewInt(now), big.NewInt(m.origin))
	return m.log.newest(max(0, n.Div(n, big.NewInt(m.width)).Int64()))
}

func (m *gridBucket) tokens(now int64) *big.Int {
	if len(m.log) == 0 {
		return m.burst
	}
	tokens := new(big.Int).Mul(big.NewInt(m.refills(now)), m.amount)
	tokens.Sub(tokens, m.log.sum(func(int64) bool { return true }))
	if tokens.Sign() >= 0 {
		return m.burst
	}
	return tokens.Add(tokens, m.burst)
}

func (m *gridBucket) fits(now, cost int64) answer {
	return is(big.NewInt(cost).Cmp(m.tokens(now)) <= 0)
}

func (m *gridBucket) fresh(now int64) answer { return is(m.tokens(now).Cmp(m.burst) == 0) }

func (m *gridBucket) admit(now, cost int64) {
	if m.fresh(now) == yes {
		m.log, m.origin = nil, now
		m.log.note(0, cost)
		return
	}
	m.log.note(m.refills(now), cost)
}
