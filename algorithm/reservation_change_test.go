package algorithm_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
)

// TestS18SettlingAfterAChange: 10 units are used and 10 reserved of 20 when the limit is lowered to 10. What is then given back of the
// reservation is of the units that the lower limit has no room for: it admits nothing more, whichever limit settles it.
func TestS18SettlingAfterAChange(t *testing.T) {
	const now = int64(1_700_000_000_000_000)
	for _, to := range []string{"10/1h", "20/1h burst=10", "fixed-window 10/1h", "sliding-log 10/1h", "sliding-window 10/1h", "hybrid 10/1h", "exponential 10/1h", "10/day"} {
		for _, from := range []string{"20/1h", "fixed-window 20/1h", "sliding-log 20/1h", "sliding-window 20/1h", "sliding-buckets 20/1h", "hybrid 20/1h"} {
			for _, by := range []string{from, to} {
				old, next := program(t, from), program(t, to)
				a, _ := algorithm.Account{}.Apply(old, algorithm.Op{Cost: 10}, now)
				a, _ = a.Apply(old, algorithm.Op{Kind: algorithm.Reserve, Cost: 10, ID: 7, Life: 1_000_000_000}, now+1000)
				a, _ = a.Apply(next, algorithm.Op{Cost: 1}, now+2000)
				a, r := a.Apply(program(t, by), algorithm.Op{Kind: algorithm.Commit, ID: 7}, now+3000)
				if !r.Allowed {
					t.Fatalf("%s to %s, settled by %s: %+v", from, to, by, r)
				}
				if _, r = a.Apply(next, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 20}, now+4000); r.Granted != 0 {
					t.Errorf("%s to %s, settled by %s: %d more, want none", from, to, by, r.Granted)
				}
			}
		}
	}
}

// TestS18ChangesAndReservationsAtOneInstant: whatever is taken, reserved, settled and given back under whichever limits, no more is in use than the greatest of them admits.
func TestS18ChangesAndReservationsAtOneInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		programs := changing(t, algorithm.All()...)
		now := rapid.Int64Range(-algorithm.MaxTime/2, algorithm.MaxTime/2).Draw(t, "now") / int64(programs[0].Tick())
		var a algorithm.Account
		var inUse, most int64
		held := map[int64]int64{}
		for id := range int64(steps) {
			p := rapid.SampledFrom(programs).Draw(t, "in force")
			most = max(most, p.Limit().Capacity())
			op := upTo(rapid.Int64Range(1, 12).Draw(t, "cost"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 1:
				op = algorithm.Op{Kind: algorithm.Reserve, Cost: op.Cost, ID: id + 1, Life: 1000}
			case 2:
				op = algorithm.Op{Kind: algorithm.Commit, ID: rapid.Int64Range(1, id+1).Draw(t, "of"), Cost: op.Cost - 1}
				op.Cost = min(op.Cost, held[op.ID])
			case 3:
				op = algorithm.Op{Kind: algorithm.Refund, Cost: op.Cost}
				free := inUse
				for _, units := range held {
					free -= units
				}
				if op.Cost = min(op.Cost, free); op.Cost <= 0 {
					continue
				}
			}
			var r algorithm.Result
			a, r = a.Apply(p, op, now)
			switch op.Kind {
			case algorithm.TakeUpTo:
				inUse += r.Granted
			case algorithm.Refund:
				inUse -= op.Cost
			case algorithm.Reserve:
				if r.Allowed {
					held[op.ID] = r.Granted
					inUse += r.Granted
				}
			case algorithm.Commit:
				if r.Allowed {
					inUse -= held[op.ID] - op.Cost
					delete(held, op.ID)
				}
			}
			if inUse > most {
				t.Fatalf("%+v under %v brings what is in use to %d, of at most %d: %s %d", op, p.Limit(), inUse, most, a.Head(), a.State)
			}
		}
	})
}

// TestACommitIsUsedUnderEveryLimit: the units of a reservation beyond its estimate are used under the limits before, too.
func TestACommitIsUsedUnderEveryLimit(t *testing.T) {
	const now = int64(1_700_000_000_000_000)
	wide, narrow := program(t, "20/1h"), program(t, "fixed-window 15/1h")
	a, _ := algorithm.Account{}.Apply(wide, algorithm.Op{Cost: 1}, now)
	a, _ = a.Apply(narrow, algorithm.Op{Kind: algorithm.Reserve, Cost: 2, ID: 1, Life: 1_000_000}, now)
	a, r := a.Apply(narrow, algorithm.Op{Kind: algorithm.Commit, ID: 1, Cost: 7}, now)
	if !r.Allowed || r.Remaining != 7 {
		t.Fatalf("settled at 7: %+v, want 7 left of 15", r)
	}
	if _, r = a.Apply(wide, algorithm.Op{}, now); r.Remaining != 12 {
		t.Errorf("%d left of 20 after 8, want 12", r.Remaining)
	}
}

// A reservation that says no life can be settled at its own instant.
func TestAReservationLivesForATick(t *testing.T) {
	const now = int64(1_700_000_000_000_000)
	p := program(t, "5/1h")
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 5, ID: 1}, now)
	if _, r := a.Apply(p, algorithm.Op{Kind: algorithm.Commit, ID: 1, Cost: 5}, now); !r.Allowed || r.Remaining != 0 {
		t.Errorf("got %+v, want it settled", r)
	}
}
