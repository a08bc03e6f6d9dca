package algorithm_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// These tests hold changes of limits to the promises at the head of change.go.

// onGrids are the algorithms whose windows begin and end at times of their own, so that units come back at once.
var onGrids = []algorithm.Algorithm{algorithm.FixedWindow, algorithm.Calendar}

// alternating draws two or three small limits, which a trace of some hundred ticks meets often.
func alternating(t *rapid.T, algorithms []algorithm.Algorithm) (programs []*algorithm.Program) {
	for range rapid.IntRange(2, 3).Draw(t, "limits") {
		a := rapid.SampledFrom(algorithms).Draw(t, "algorithm")
		l := limitAt(a, rapid.Int64Range(1, 6).Draw(t, "count"), time.Duration(rapid.Int64Range(6, 40).Draw(t, "period")))
		switch a {
		case algorithm.TokenBucket, algorithm.RefillBucket:
			l.Burst = rapid.Int64Range(1, 8).Draw(t, "burst")
		case algorithm.LeakyQueue:
			l.Queue = rapid.Int64Range(1, 8).Draw(t, "queue")
		case algorithm.SlidingBuckets:
			l.Cells = 3
		}
		programs = append(programs, compile(t, l))
	}
	return programs
}

// admissions are units by the time of their admission.
type admissions []struct{ at, units int64 }

// checkBound checks each interval against a bound.
func (list admissions) checkBound(t *rapid.T, bound func(length int64) *big.Rat) {
	t.Helper()
	for i := range list {
		sum := int64(0)
		for _, last := range list[i:] {
			sum += last.units
			if most := bound(last.at - list[i].at); rat(sum).Cmp(most) > 0 {
				t.Fatalf("%d units are admitted from %d to %d, want at most %s: %v", sum, list[i].at, last.at, most.FloatString(2), list)
			}
		}
	}
}

// TestChangesAdmitNoMoreThanTheLargest: the largest capacity, and then the fastest rate; with one capacity more where units come back
// at once. Fixed windows give what each gives by itself.
func TestChangesAdmitNoMoreThanTheLargest(t *testing.T) {
	families := map[string][]algorithm.Algorithm{
		"linear":  {algorithm.TokenBucket, algorithm.LeakyQueue, algorithm.MinInterval},
		"gliding": {algorithm.TokenBucket, algorithm.SlidingLog, algorithm.SlidingBuckets, algorithm.Concurrent, algorithm.Exponential},
		"windows": except(append([]algorithm.Algorithm{algorithm.Calendar}, onGrids...)...),
		"fixed":   except(algorithm.Calendar),
	}
	for name, algorithms := range families {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				programs := alternating(t, algorithms)
				capacity, rate, sum, rates := int64(0), new(big.Rat), int64(0), new(big.Rat)
				for _, p := range programs {
					l := p.Limit()
					capacity, sum = max(capacity, l.Capacity()), sum+2*max(l.Count, l.Capacity())
					r := big.NewRat(l.Count, int64(l.Period))
					rates.Add(rates, r)
					if r.Cmp(rate) > 0 {
						rate = r
					}
				}
				var a algorithm.Account
				var admitted admissions
				sticky := rapid.IntRange(1, 20).Draw(t, "sticky")
				p := programs[0]
				for now := int64(0); now < 400; now += rapid.Int64Range(0, 12).Draw(t, "gap") {
					if rapid.IntRange(0, sticky).Draw(t, "change") == 0 {
						p = rapid.SampledFrom(programs).Draw(t, "in force")
					}
					op := algorithm.Op{Kind: rapid.SampledFrom([]algorithm.Kind{algorithm.Take, algorithm.TakeUpTo}).Draw(t, "kind"), Cost: rapid.Int64Range(1, 6).Draw(t, "cost")}
					var r algorithm.Result
					a, r = a.Apply(p, op, now)
					if r.Granted > 0 {
						admitted = append(admitted, struct{ at, units int64 }{now, r.Granted})
					}
				}
				admitted.checkBound(t, func(length int64) *big.Rat {
					switch name {
					case "fixed":
						return new(big.Rat).Add(rat(sum), new(big.Rat).Mul(rates, rat(length)))
					case "windows":
						return new(big.Rat).Add(rat(2*capacity+6), new(big.Rat).Mul(rate, rat(length)))
					}
					return new(big.Rat).Add(rat(capacity), new(big.Rat).Mul(rate, rat(length)))
				})
			})
		})
	}
}

// TestChangesKeepTheSlowestRate: a client that keeps asking under each limit in turn gets about half of what the slowest gives, or
// more.
func TestChangesKeepTheSlowestRate(t *testing.T) {
	const span = 2000
	rapid.Check(t, func(t *rapid.T) {
		programs := alternating(t, except(algorithm.Calendar))
		gap := rapid.Int64Range(1, 8).Draw(t, "gap")
		least := float64(span / gap)
		for _, p := range programs {
			var state []int64
			alone := 0.0
			for now := int64(0); now < span; now += gap {
				var r algorithm.Result
				state, r = p.Apply(state, algorithm.Op{Cost: 1}, now)
				alone += float64(r.Granted)
			}
			least = min(least, alone)
		}
		var a algorithm.Account
		total := int64(0)
		for now := int64(0); now < span; now += gap {
			var r algorithm.Result
			a, r = a.Apply(programs[now/gap%int64(len(programs))], algorithm.Op{Cost: 1}, now)
			total += r.Granted
		}
		if parts := float64(len(programs) + 1); float64(total) < 0.9*least/parts {
			t.Fatalf("%d of %.0f are admitted, each %d, of %v", total, least, gap, limitsOf(programs))
		}
	})
}

func limitsOf(programs []*algorithm.Program) (limits []algorithm.Limit) {
	for _, p := range programs {
		limits = append(limits, p.Limit())
	}
	return limits
}

// TestChangesWithinOneGridLoseNothing: limits of one algorithm and period that differ in their counts are one state under two bounds. The
// larger of them, given the units that both admitted, has the state that they left; and a request is admitted if its own limit has room beside them.
func TestChangesWithinOneGridLoseNothing(t *testing.T) {
	for _, a := range []algorithm.Algorithm{
		algorithm.FixedWindow, algorithm.Calendar, algorithm.QuotaReset, algorithm.SlidingLog, algorithm.SlidingWindow,
		algorithm.SlidingBuckets, algorithm.Concurrent, algorithm.Exponential,
	} {
		t.Run(string(a), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				period := time.Duration(rapid.Int64Range(3, 40).Draw(t, "period"))
				small := rapid.Int64Range(1, 6).Draw(t, "count")
				var programs []*algorithm.Program
				for _, count := range []int64{small, small + rapid.Int64Range(1, 6).Draw(t, "more")} {
					l := limitAt(a, count, period)
					if a == algorithm.SlidingBuckets {
						l.Cells = 3
					}
					programs = append(programs, compile(t, l))
				}
				larger := programs[1]
				tr := newTrace(t, larger.Limit(), false)
				var record algorithm.Account
				var state []int64
				for range steps {
					p := rapid.SampledFrom(programs).Draw(t, "in force")
					now, cost := tr.next(t)
					op := algorithm.Op{Kind: anyKind(t), Cost: cost}
					_, room := p.Apply(slices.Clone(state), op, now)
					var got, want algorithm.Result
					record, got = record.Apply(p, op, now)
					if got.Allowed != room.Allowed || got.Granted != room.Granted || got.Remaining != room.Remaining || got.RetryAfter != room.RetryAfter {
						t.Fatalf("%+v at %d under %v: %+v, want %+v; %s %d, %d", op, now, p.Limit(), got, room, record.Head(), record.State, state)
					}
					if op.Kind <= algorithm.TakeUpTo {
						op = algorithm.Op{Cost: got.Granted}
					}
					state, want = larger.Apply(state, op, now)
					if !want.Allowed || !slices.Equal(state, record.State) {
						t.Fatalf("%+v at %d: the state is %d under %s, want %d", op, now, record.State, record.Head(), state)
					}
					tr.last = got.Decision
				}
			})
		})
	}
}

// TestChangesWithinTheLinearFamilyAreExact: the units in use are a fraction, which the record holds up to a tick for each change.
func TestChangesWithinTheLinearFamilyAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var programs []*algorithm.Program
		for range 2 {
			l := algorithm.Limit{
				Count: rapid.Int64Range(1, 60).Draw(t, "count"), Burst: rapid.Int64Range(1, 60).Draw(t, "burst"),
				Period: time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "period")),
			}
			l.Period += time.Duration(10_000 * l.Count) // an interval of 10,000 ticks or more
			programs = append(programs, compile(t, l))
		}
		var a algorithm.Account
		used, last, owner := new(big.Rat), int64(0), programs[0] // of the record
		slack := big.NewRat(0, 1)                                // in units
		for range steps {
			p := rapid.SampledFrom(programs).Draw(t, "in force")
			now := last + rapid.Int64Range(0, int64(2*p.Limit().Period)/p.Limit().Count).Draw(t, "gap")
			rate := big.NewRat(owner.Limit().Count, int64(owner.Limit().Period))
			used.Sub(used, rate.Mul(rate, rat(now-last)))
			if last = now; used.Sign() < 0 {
				used.SetInt64(0)
			}
			cost := rapid.Int64Range(1, 10).Draw(t, "cost")
			room := new(big.Rat).Sub(rat(p.Limit().Capacity()-cost), used)
			var r algorithm.Result
			a, r = a.Apply(p, algorithm.Op{Cost: cost}, now)
			if r.Allowed && room.Sign() < 0 || !r.Allowed && room.Cmp(slack) >= 0 {
				t.Fatalf("%v at %d: %+v, with %s units of room; %s %d", p.Limit(), now, r, room.FloatString(9), a.Head(), a.State)
			}
			if a.Program != owner && a.Program != nil {
				slack.Add(slack, big.NewRat(1, 10_000))
				owner = a.Program
			}
			if r.Allowed {
				used.Add(used, rat(cost))
			}
		}
	})
}

// TestADenialOnlyShortensTheWait: a denial of a limit that is not the record's leaves it, or makes the wait shorter with as many units in
// use, and the wait is true.
func TestADenialOnlyShortensTheWait(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := changing(t, algorithm.All()...)
		tick := int64(programs[0].Tick())
		tr := newTrace(t, programs[0].Limit(), true)
		var a algorithm.Account
		for range steps {
			p := rapid.SampledFrom(programs).Draw(t, "in force")
			now, cost := tr.next(t)
			now /= tick
			before := cloneAccount(a)
			var r algorithm.Result
			a, r = a.Apply(p, algorithm.Op{Cost: cost}, now)
			if same := a.Head() == before.Head() && slices.Equal(a.State, before.State); !r.Allowed && !same && before.Program != p && !p.Limit().Strict {
				_, was := before.Apply(before.Program, algorithm.Op{}, now)
				_, is := a.Apply(before.Program, algorithm.Op{}, now)
				if r.RetryAfter >= was.ResetAfter || is.Remaining > was.Remaining || a.Program != p {
					t.Fatalf("%v at %d: %+v of %s %d leaves %s %d", p.Limit(), now, r, before.Head(), before.State, a.Head(), a.State)
				}
			}
			checkRetryOfAccount(t, a, p, r, cost, now)
			tr.last = r.Decision
		}
	})
}
