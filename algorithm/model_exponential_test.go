package algorithm_test

import (
	"math/big"

	"github.com/weirlimit/weir/algorithm"
)

const (
	// bits is the precision of the model of the moving average: five times that of a float64.
	bits = 256
	// tolerance is the relative distance from the limit within which the program, which computes in float64,
	// may decide either way: 4500 roundings.
	tolerance = 1e-12
)

// average is the exponentially weighted moving average of Tony Finch ("exponential rate limiting", dotat.at, 2024-09-02) and of Exim's ratelimit.
type average struct {
	limit, period *big.Float
	rate          *big.Float // nil: never seen
	last          int64
}

func newAverage(l algorithm.Limit) model {
	m := &average{limit: whole(l.Count), period: whole(int64(l.Period))}
	if l.Strict {
		return &strictAverage{m}
	}
	return m
}

// strictAverage counts denied requests too.
type strictAverage struct{ *average }

func (m *strictAverage) deny(now, cost int64) { m.admit(now, cost) }

func whole(n int64) *big.Float { return new(big.Float).SetPrec(bits).SetInt64(n) }
func float() *big.Float        { return new(big.Float).SetPrec(bits) }

// next is e^−x·rate + cost·(1−e^−x)/x, at least cost; x is the time since the last update in periods.
func (m *average) next(now, cost int64) *big.Float {
	c := whole(cost)
	if m.rate == nil {
		return c
	}
	x := float().Quo(whole(max(0, now-m.last)), m.period)
	if x.Sign() == 0 {
		return c.Add(c, m.rate)
	}
	kept := decay(x)
	gain := float().Quo(float().Sub(whole(1), kept), x)
	sum := float().Add(float().Mul(kept, m.rate), float().Mul(gain, c))
	if sum.Cmp(c) < 0 {
		return c
	}
	return sum
}

func (m *average) fits(now, cost int64) answer {
	if m.limit.Cmp(whole(cost)) < 0 {
		return no
	}
	return below(m.next(now, cost), m.limit)
}

func (m *average) admit(now, cost int64) {
	next := m.next(now, cost)
	if m.rate == nil || now > m.last {
		m.last = now
	}
	m.rate = next
}

// fresh is whether the smallest request would count as if it were alone.
func (m *average) fresh(now int64) answer {
	switch {
	case m.rate == nil:
		return yes
	case now <= m.last:
		return no
	}
	return below(m.next(now, 1), whole(1))
}

// below says whether a ≤ b, or either if they are too close to tell in float64.
func below(a, b *big.Float) answer {
	edge := float().Mul(b, float().SetFloat64(tolerance))
	if diff := float().Sub(a, b); float().Abs(diff).Cmp(edge) > 0 {
		return is(diff.Sign() < 0)
	}
	return either
}

// decay returns e^−x for x ≥ 0, by the series for a small part of x, squared up again.
func decay(x *big.Float) *big.Float {
	if x.Cmp(whole(1000)) > 0 {
		return float() // 10^−434 makes no difference to a tolerance of 10^−12
	}
	const halvings = 20
	small := float().SetMantExp(x, -halvings)
	sum, term := whole(1), whole(1)
	for i := int64(1); i < 40; i++ {
		term.Quo(term.Mul(term, small), whole(-i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}
