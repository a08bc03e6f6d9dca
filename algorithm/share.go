package algorithm

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"time"
)

// Share returns the limit with part/whole of the units of l, in canonical form. All counts are
// rounded down: whole processes that each enforce a share of 1/whole admit together at most the
// bound of l. Share divides the count, and the burst or queue. A linear limit whose count is less
// than 1 after that has a count of 1 and a longer period.
//
// The error is a [*LimitError] for a part that is not 1 to whole, and for a limit without a whole
// unit for each share: a smaller count, burst or queue than whole/part, and min-interval, which
// admits 1 unit at once. A leaky-queue delays requests at the pace of the share, so as many
// requests may leave at once as there are shares.
func (l Limit) Share(part, whole int64) (Limit, error) {
	if part < 1 || part > whole {
		return Limit{}, refuse("share", fmt.Sprintf("%d/%d", part, whole), "more than 0, up to 1")
	}
	l = l.Canonical()
	if part == whole {
		return l, nil
	}
	s := fraction{part, whole}
	switch a := l.Algorithm; {
	case a == MinInterval:
		return Limit{}, refuse("algorithm", a, "one that admits %d units or more at once, for a share of %v", s.least(1), s)
	case a.kind().option == "queue":
		units := s.of(l.Queue + 1) // of which one is not queued
		if units < 2 {
			return Limit{}, refuse("queue", l.Queue, "%d or more, for a share of %v", s.least(2)-1, s)
		}
		l.Queue = units - 1
	case a.kind().option == "burst":
		burst := s.of(l.Burst)
		if burst < 1 {
			return Limit{}, refuse("burst", l.Burst, "%d or more, for a share of %v", s.least(1), s)
		}
		l.Burst = burst
	}
	count := s.of(l.Count)
	if count < 1 && l.Algorithm.Linear() && l.Algorithm != Cooldown {
		return l.slower(s)
	}
	if count < 1 {
		return Limit{}, refuse("count", l.Count, "%d or more, for a share of %v", s.least(1), s)
	}
	l.Count = count
	return l.shared()
}

// slower returns the limit with 1 unit in each period of the share.
func (l Limit) slower(s fraction) (Limit, error) {
	period := new(big.Int).Mul(big.NewInt(int64(l.Period)), big.NewInt(s.whole))
	divisor := new(big.Int).Mul(big.NewInt(l.Count), big.NewInt(s.part))
	period.Add(period, new(big.Int).Sub(divisor, big.NewInt(1)))
	period.Quo(period, divisor) // at most the time in which all of a valid limit comes back
	l.Count, l.Period = 1, time.Duration(period.Int64())
	return l.shared()
}

// shared checks a share of a limit.
func (l Limit) shared() (Limit, error) {
	l.nanoseconds = true // the period of a share is no slip
	l = l.Canonical()
	return l, l.Validate()
}

// A fraction is more than 0 and less than 1.
type fraction struct{ part, whole int64 }

// of returns the fraction of n units, rounded down.
func (f fraction) of(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(f.part))
	units, _ := bits.Div64(hi, lo, uint64(f.whole)) // hi < whole, because part < whole
	return int64(units)
}

// least returns the smallest number of units of which the fraction is n or more.
func (f fraction) least(n int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(f.whole))
	if hi >= uint64(f.part) {
		return math.MaxInt64
	}
	units, rest := bits.Div64(hi, lo, uint64(f.part))
	if rest > 0 {
		units++
	}
	return int64(min(units, math.MaxInt64))
}

// String returns the fraction in percent.
func (f fraction) String() string {
	return strconv.FormatFloat(100*float64(f.part)/float64(f.whole), 'g', 6, 64) + "%"
}
