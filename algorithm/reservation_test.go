package algorithm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"pgregory.net/rapid"
)

// A ledger is a budget with reservations, the slow way: a list of them, and sums. Nothing comes back by itself.
type ledger struct {
	capacity, used int64 // used may be more than the capacity: the rest is owed
	holds          map[int64]held
}

type held struct{ units, expires int64 }

func (l *ledger) expire(now int64) {
	for id, h := range l.holds {
		if h.expires <= now {
			l.used -= h.units
			delete(l.holds, id)
		}
	}
}

func (l *ledger) take(cost int64) (granted bool) {
	if cost > l.capacity-l.used {
		return cost == 0
	}
	l.used += cost
	return true
}

func (l *ledger) reserve(id, cost, expires int64) (granted bool) {
	if h, again := l.holds[id]; again {
		l.holds[id] = held{h.units, max(h.expires, expires)}
		return true
	}
	if l.used > l.capacity || !l.take(cost) {
		return false
	}
	l.holds[id] = held{cost, expires}
	return true
}

func (l *ledger) commit(id, cost int64, late bool) (charged bool) {
	h, found := l.holds[id]
	charged = found || late && cost > 0
	if charged {
		l.used += cost - h.units
		delete(l.holds, id)
	}
	return charged
}

// TestReservationsAgreeWithALedger, in one window, under any limit that gives nothing back within it.
func TestReservationsAgreeWithALedger(t *testing.T) {
	for _, form := range []string{"fixed-window %d/1000h", "quota-reset %d/1000h", "sliding-log %d/1000h", "sliding-buckets %d/1000h cells=2", "%d/year", "concurrent %d lease=1000h", "refill-bucket 1/1000h burst=%d"} {
		t.Run(form, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				capacity := rapid.Int64Range(1, 20).Draw(t, "capacity")
				p := compile(t, algorithm.MustParseLimit(fmt.Sprintf(form, capacity)))
				m := ledger{capacity: capacity, holds: map[int64]held{}}
				var a algorithm.Account
				for now := int64(0); now < 60; now += rapid.Int64Range(0, 3).Draw(t, "gap") {
					m.expire(now)
					op := algorithm.Op{
						Kind: rapid.SampledFrom([]algorithm.Kind{algorithm.Take, algorithm.Reserve, algorithm.Commit}).Draw(t, "kind"),
						Cost: rapid.Int64Range(0, capacity+1).Draw(t, "cost"), ID: rapid.Int64Range(1, 4).Draw(t, "id"),
						Life: rapid.Int64Range(1, 10).Draw(t, "life"), Late: rapid.Bool().Draw(t, "late"),
					}
					var want bool
					switch op.Kind {
					case algorithm.Reserve:
						want = m.reserve(op.ID, op.Cost, now+op.Life)
					case algorithm.Commit:
						want = m.commit(op.ID, op.Cost, op.Late)
					default:
						want = m.take(op.Cost)
					}
					var r algorithm.Result
					a, r = a.Apply(p, op, now)
					left := max(0, capacity-m.used)
					peeked := op.Kind == algorithm.Take && op.Cost == 0 // and wrote nothing
					if r.Allowed != want || r.Remaining != left || !peeked && (a.Extra != nil && a.Extra.Owed > 0) != (m.used > capacity) {
						t.Fatalf("%v: %+v at %d: %+v; want %v and %d left, of %+v; %s %d", p.Limit(), op, now, r, want, left, m, a.Head(), a.State)
					}
					if len(a.State) == 0 && m.used == 0 && len(m.holds) == 0 {
						return // a window ends when nothing is in it
					}
				}
			})
		})
	}
}

// What is owed is paid before anything else, and the wait is until it is, and there is room for the request.
func TestWhatIsOwedIsPaidFirst(t *testing.T) {
	for text, want := range map[string]struct{ wait, reset time.Duration }{
		"10/10s":                       {16 * time.Second, 25 * time.Second}, // full, 15 owed: it takes 15 s to pay, and one more for a unit
		"gcra 10/10s":                  {16 * time.Second, 25 * time.Second},
		"fixed-window 10/10s":          {20 * time.Second, 30 * time.Second}, // 10 of them in the second window, 5 in the third, where there is room
		"quota-reset 10/10s":           {20 * time.Second, 30 * time.Second},
		"sliding-log 10/10s":           {20 * time.Second, 30 * time.Second},
		"concurrent 10 lease=10s":      {20 * time.Second, 30 * time.Second},
		"refill-bucket 5/10s burst=10": {40 * time.Second, 50 * time.Second},
		"10/day":                       {48 * time.Hour, 72 * time.Hour},
	} {
		p := compile(t, algorithm.MustParseLimit(text))
		a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 10, ID: 7, Life: 1000}, 0)
		a, r := a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 25, ID: 7}, 0)
		if !r.Allowed || r.Granted != 25 || r.Remaining != 0 || r.ResetAfter != want.reset {
			t.Errorf("%s: commit %+v, want a reset after %v", text, r, want.reset)
		}
		a, r = a.Apply(p, algorithm.Op{Cost: 1}, 0)
		if r.Allowed || r.RetryAfter != want.wait || r.ResetAfter != want.reset {
			t.Errorf("%s: %+v, want a wait of %v", text, r, want.wait)
		}
		if _, r = cloneAccount(a).Apply(p, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 5}, 0); r.Allowed || r.RetryAfter != want.wait {
			t.Errorf("%s: up to 5: %+v", text, r)
		}
		if _, r = cloneAccount(a).Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 8, Life: 1}, 0); r.Allowed || r.RetryAfter != want.wait {
			t.Errorf("%s: reserve: %+v", text, r)
		}
		if _, r = cloneAccount(a).Apply(p, algorithm.Op{Cost: 11}, 0); r.RetryAfter != algorithm.Never {
			t.Errorf("%s: more than the capacity: %+v", text, r)
		}
		if _, r = cloneAccount(a).Apply(p, algorithm.Op{Cost: 1}, int64(want.wait)-1); r.Allowed || r.RetryAfter != 1 {
			t.Errorf("%s: before the wait: %+v", text, r)
		}
		if _, r = cloneAccount(a).Apply(p, algorithm.Op{Cost: 1}, int64(want.wait)); !r.Allowed {
			t.Errorf("%s: after the wait: %+v", text, r)
		}
		if life := a.Life(0); life != int64(want.reset) {
			t.Errorf("%s: life %v", text, time.Duration(life))
		}
	}
}

// A Refund pays what is owed first.
func TestRefundPaysWhatIsOwed(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("10/10s"))
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 10, ID: 7, Life: 1000}, 0)
	a, _ = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 15, ID: 7}, 0)
	a, r := a.Apply(p, algorithm.Op{Kind: algorithm.Refund, Cost: 4}, 0)
	if r.Remaining != 0 || r.ResetAfter != 11*time.Second {
		t.Errorf("%+v", r)
	}
	if _, r = a.Apply(p, algorithm.Op{Kind: algorithm.Refund, Cost: 4}, 0); r.Remaining != 3 || r.ResetAfter != 7*time.Second {
		t.Errorf("%+v", r)
	}
}

// A reservation gives back what has not come back by itself, whether it is settled, or its life ends.
func TestReservationsGiveBackWhatIsStillHeld(t *testing.T) {
	for _, c := range []struct {
		limit     string
		at        time.Duration
		remaining int64
	}{
		{"10/10s", 0, 10}, {"10/10s", 4 * time.Second, 10}, {"fixed-window 10/10s", 4 * time.Second, 10}, {"fixed-window 10/10s", 11 * time.Second, 10},
		{"sliding-log 10/10s", 4 * time.Second, 10}, {"exponential 10/10s", 0, 10}, {"exponential 10/10s", 4 * time.Second, 6},
		{"10/day", 4 * time.Hour, 10}, {"concurrent 10 lease=10s", 4 * time.Second, 10},
	} {
		p := compile(t, algorithm.MustParseLimit(c.limit))
		life := max(1, int64(c.at))
		reserved, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: life}, 0)
		for name, settle := range map[string]algorithm.Op{
			"cancelled": {Kind: algorithm.Commit, ID: 1}, "over": {},
		} {
			at := int64(c.at)
			if name == "over" {
				at = life
			} else if at == life {
				at--
			}
			_, r := cloneAccount(reserved).Apply(p, settle, at)
			if want := c.remaining; r.Remaining != want && c.limit != "exponential 10/10s" || r.Remaining > 10 {
				t.Errorf("%s, %s at %v: %+v, want %d left", c.limit, name, time.Duration(at), r, want)
			}
		}
	}
}

// Others' units are not given back with a reservation's: 6 were reserved, of which 4 have come back by themselves, and 4 more were taken since.
func TestReservationsGiveBackNobodyElses(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("10/10s"))
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: 100 * sec}, 0)
	a, _ = a.Apply(p, algorithm.Op{Cost: 4}, 4*sec)
	if _, r := a.Apply(p, algorithm.Op{Kind: algorithm.Commit, ID: 1}, 4*sec); r.Remaining != 6 {
		t.Errorf("%+v; want 6 left", r)
	}
}

// Twice the same is once, and after the end is nothing.
func TestReservationsAreSettledOnce(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("10/1h"))
	reserve := algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: 100}
	a, _ := algorithm.Account{}.Apply(p, reserve, 0)
	again, r := a.Apply(p, reserve, 0)
	if !r.Allowed || r.Granted != 6 || r.Remaining != 4 || again.Head() != a.Head() {
		t.Errorf("again: %+v, %s", r, again.Head())
	}
	if _, r = cloneAccount(again).Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 2, ID: 1}, 100); r.Allowed || r.RetryAfter != algorithm.Never || r.Verdict().Granted != -1 {
		t.Errorf("when its life is over: %+v", r)
	}
	a, r = again.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 2, ID: 1}, 99)
	if !r.Allowed || r.Remaining != 8 || r.Granted != 2 {
		t.Errorf("settled: %+v", r)
	}
	before := a.Head()
	if a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 2, ID: 1}, 99); r.Allowed || r.RetryAfter != algorithm.Never || r.Remaining != 8 || a.Head() != before {
		t.Errorf("settled twice: %+v", r)
	}
}

// A second Reserve, of any cost, moves the expiry forward, and never back.
func TestReservationsAreRenewed(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("10/1h"))
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: 100}, 0)
	a, _ = a.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 2, ID: 2, Life: 120}, 0)
	a, r := a.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 9, ID: 1, Life: 100}, 99)
	if !r.Allowed || r.Granted != 6 || r.Remaining != 2 || a.Extra.Holds[1].ID != 1 || a.Extra.Holds[1].Expires != 199 {
		t.Errorf("renewed: %+v, %s", r, a.Head())
	}
	again, _ := cloneAccount(a).Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: 10}, 99)
	if again.Head() != a.Head() {
		t.Errorf("a renewal moved the expiry back: %s", again.Head())
	}
	if _, r = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 1}, 198); !r.Allowed || r.Remaining != 9 {
		t.Errorf("settled after its first life: %+v", r)
	}
}

// A late Commit without a reservation charges its whole cost; with a reservation it is a Commit.
func TestLateCommits(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("fixed-window 10/1h"))
	late := algorithm.Op{Kind: algorithm.Commit, Late: true, Cost: 4, ID: 1}
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 6, ID: 1, Life: 100}, 0)
	a, r := a.Apply(p, late, 50)
	if !r.Allowed || r.Granted != 4 || r.Remaining != 6 {
		t.Errorf("in time: %+v", r)
	}
	a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Late: true, Cost: 16, ID: 2}, 60)
	if !r.Allowed || r.Granted != 16 || r.Remaining != 0 || a.Extra == nil || a.Extra.Owed != 10 {
		t.Errorf("late: %+v, %s", r, a.Head())
	}
	if _, r = cloneAccount(a).Apply(p, algorithm.Op{Cost: 1}, 70); r.Allowed || r.RetryAfter != 2*time.Hour-70 {
		t.Errorf("a take while there is debt: %+v", r)
	}
	if _, r = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Late: true, ID: 3}, 70); r.Allowed || r.RetryAfter != algorithm.Never {
		t.Errorf("late at nothing: %+v", r)
	}
}

// More reservations than an account keeps are denied until the first is over, and so are those for which there is no room either.
func TestReservationsAreBounded(t *testing.T) {
	p := compile(t, algorithm.MustParseLimit("2000/1h"))
	var a algorithm.Account
	var r algorithm.Result
	for i := range int64(algorithm.MaxHolds) {
		if a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: i + 1, Life: 5000 - i}, 0); !r.Allowed {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	more := algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 5000, Life: 10}
	if a, r = a.Apply(p, more, 1); r.Allowed || r.RetryAfter != 5000-1023-1 || r.Remaining != 2000-1024 {
		t.Errorf("%+v", r)
	}
	read, err := algorithm.ReadHead(p, a.Head(), a.State)
	if err != nil || read.Head() != a.Head() {
		t.Errorf("the longest head: %v", err)
	}
	more.Cost = 3000
	if _, r = a.Apply(p, more, 1); r.Allowed || r.RetryAfter != algorithm.Never {
		t.Errorf("more than the capacity: %+v", r)
	}
	more.Cost = 1
	if _, r = a.Apply(p, more, 5000-1023); !r.Allowed {
		t.Errorf("when the first is over: %+v", r)
	}
}

// A reservation outlives a change of the limit.
func TestReservationsOutliveAChange(t *testing.T) {
	low, high := compile(t, algorithm.MustParseLimit("100/1h")), compile(t, algorithm.MustParseLimit("200/1h"))
	a, _ := algorithm.Account{}.Apply(low, algorithm.Op{Kind: algorithm.Reserve, Cost: 100, ID: 1, Life: 1000}, 0)
	a, _ = a.Apply(high, algorithm.Op{Cost: 50}, 0)
	a, r := a.Apply(high, algorithm.Op{Kind: algorithm.Commit, Cost: 30, ID: 1}, 0)
	if !r.Allowed || r.Remaining != 120 {
		t.Errorf("%+v; want 120 left: 80 of 200 are used", r)
	}
	if _, r = a.Apply(low, algorithm.Op{}, 0); r.Remaining != 20 {
		t.Errorf("%+v; want 20 left: 80 of 100 are used", r)
	}
}

// A capacity as large as an int64, and debts that would be more, are answered.
func TestWhatIsOwedSaturates(t *testing.T) {
	const most = 1<<63 - 1
	p := compile(t, algorithm.MustParseLimit("9223372036854775807/1s"))
	a, _ := algorithm.Account{}.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: most, ID: 1, Life: most}, algorithm.MaxTime)
	a, r := a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: most, ID: 1}, algorithm.MaxTime)
	if r.Remaining != 0 || r.ResetAfter != time.Second || a.Extra != nil {
		t.Errorf("%+v, %s", r, a.Head())
	}
	for range 3 {
		a, r = a.Apply(p, algorithm.Op{Kind: algorithm.Reserve, Cost: 0, ID: 2, Life: most}, algorithm.MaxTime)
		a, _ = a.Apply(p, algorithm.Op{Kind: algorithm.Commit, Cost: most, ID: 2}, algorithm.MaxTime)
	}
	if a.Extra.Owed != most {
		t.Errorf("owed %d, %+v", a.Extra.Owed, r)
	}
	if _, r = a.Apply(p, algorithm.Op{Cost: 1}, algorithm.MaxTime); r.Allowed || r.RetryAfter < time.Second || r.RetryAfter > time.Second+1 {
		t.Errorf("%+v", r)
	}
	one := compile(t, algorithm.MustParseLimit("1/week"))
	a, _ = algorithm.Account{}.Apply(one, algorithm.Op{Kind: algorithm.Reserve, Cost: 0, ID: 1, Life: 1}, 0)
	a, r = a.Apply(one, algorithm.Op{Kind: algorithm.Commit, Cost: 1_000_000, ID: 1}, 0)
	if a.Extra.Owed > 1024 || r.ResetAfter > 1025*7*day {
		t.Errorf("owed %d for %v", a.Extra.Owed, r.ResetAfter)
	}
}
