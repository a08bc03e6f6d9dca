package pacing

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

func tell(limits ...header.State) Response { return Response{Served, header.Report{Limits: limits}} }

// A server may name limits without end: those that leave the least are kept, and no more than there is room for.
func TestWindowsAreBounded(t *testing.T) {
	v, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
	for i := range 10 * mostWindows {
		v.learn(tell(header.State{Name: fmt.Sprint(i), Remaining: int64(1000 - i%7), Within: time.Hour}), flight{}, now)
	}
	if len(v.windows) != mostWindows {
		t.Fatalf("%d windows are kept, want %d", len(v.windows), mostWindows)
	}
	for _, w := range v.windows {
		if w.left != 1000-6 {
			t.Errorf("a window that leaves %d is kept, and others left less", w.left)
		}
	}
	v.learn(tell(header.State{Name: "more", Remaining: 2000, Within: time.Hour}, header.State{Name: "less", Remaining: 5, Within: time.Hour}), flight{}, now)
	names := map[string]bool{}
	for _, w := range v.windows {
		names[w.name] = true
	}
	if names["more"] || !names["less"] {
		t.Errorf("kept: %v", names)
	}
}

// Limits of one name in two partitions are two.
func TestPartitions(t *testing.T) {
	v, now := &server{longest: MostPause}, time.Unix(1_800_000_000, 0)
	v.learn(tell(header.State{Name: "a", Partition: "x", Within: time.Minute}), flight{number: 1}, now)
	v.learn(tell(header.State{Name: "a", Partition: "y", Remaining: 9, Within: time.Minute}), flight{number: 2}, now)
	if v.open(now) || len(v.windows) != 2 {
		t.Errorf("nothing is left for x: %+v", v.windows)
	}
}

// What is learned is the caller's still: it is not changed.
func TestLearnLeavesTheReport(t *testing.T) {
	said := tell(header.State{Name: "held", Unit: "concurrent-requests", Within: 1}, header.State{Name: "a", Remaining: 1, Within: time.Minute})
	(&server{longest: MostPause}).learn(said, flight{}, time.Now())
	if l := said.Report.Limits; l[0].Name != "held" || l[1].Name != "a" {
		t.Errorf("%+v", l)
	}
}

// Who comes when others wait goes behind them, also at the moment in which the first of them may go and has not gone yet.
func TestNobodyOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Servers
		before := &waiter{again: make(chan struct{}, 1)}
		s.at("s").waiters = []*waiter{before}
		var k Ticket
		went := false
		go func() {
			if err := s.Enter(t.Context(), "s", time.Minute, &k); err != nil {
				t.Error(err)
			}
			went = true
		}()
		synctest.Wait()
		if went {
			t.Error("it has overtaken")
		}
		s.mu.Lock()
		s.all["s"].forget(before)
		s.mu.Unlock()
		synctest.Wait()
		if !went {
			t.Error("it does not go when it is first")
		}
	})
}

// An answer may say more when its request is under way no longer, as a stream does, even if its server was forgotten since.
func TestAnsweredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Servers
		var zeroth, first, second Ticket
		enter := func(k *Ticket) error { return s.Enter(t.Context(), "s", time.Second, k) }
		for _, k := range []*Ticket{&zeroth, &first} {
			if err := enter(k); err != nil {
				t.Fatal(err)
			}
		}
		s.Answered(&zeroth, Response{Outcome: Served})
		s.Answered(&first, Response{Outcome: Served})
		if len(s.all) != 0 {
			t.Fatal("a server is kept that said nothing")
		}
		until := s.Answered(&first, tell(header.State{Name: "a", Within: time.Minute}))
		if wait := time.Until(until); wait < time.Minute || enter(&second) == nil {
			t.Errorf("until %v, and it may be sent before", wait)
		}
		s.Answered(&zeroth, tell(header.State{Name: "a", Remaining: 5, Within: time.Minute}))
		if enter(&second) == nil {
			t.Error("an answer to an earlier request has won over that to a later one")
		}
	})
}
