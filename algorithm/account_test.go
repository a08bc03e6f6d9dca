package algorithm_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

func program(t *testing.T, text string) *algorithm.Program {
	t.Helper()
	p, err := algorithm.Compile(algorithm.MustParseLimit(text), time.Microsecond)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// S18: used 10 of 10, raised to 20, lowered to 10, raised again: 10 more once, and nothing more.
func TestS18RaisingAndLoweringGivesNothingAway(t *testing.T) {
	for _, kind := range []string{"", "fixed-window ", "quota-reset ", "sliding-log ", "sliding-window ", "sliding-buckets ", "hybrid ", "exponential ", "refill-bucket "} {
		t.Run(kind, func(t *testing.T) {
			ten, twenty := program(t, kind+"10/1h"), program(t, kind+"20/1h")
			now := int64(1_700_000_000_000_000)
			var a algorithm.Account
			took := int64(0)
			for i := range 7 {
				p := ten
				if i%2 == 1 {
					p = twenty
				}
				var r algorithm.Result
				a, r = a.Apply(p, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 100}, now)
				took += r.Granted
				read, err := algorithm.ReadHead(p, a.Head(), a.State)
				if err != nil {
					t.Fatal(err)
				}
				a = read
			}
			if took != 20 {
				t.Errorf("took %d, want 20", took)
			}
		})
	}
}

func TestCalendar(t *testing.T) {
	p := program(t, "500/day tz=Europe/Berlin anchor=15")
	at, _ := time.Parse(time.RFC3339, "2026-03-29T12:00:00+02:00") // clocks were set forward this morning
	_, r := algorithm.Account{}.Apply(p, algorithm.Op{Cost: 1}, at.UnixMicro())
	if r.ResetAfter != 3*time.Hour || r.Remaining != 499 {
		t.Error(r)
	}
}
