package acceptance_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

func limiter(t testing.TB, text string, opts ...weir.Option) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(text), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func takeAll(t *testing.T, charges ...weir.Charge) (weir.Decision, []weir.Decision) {
	t.Helper()
	d, each, err := weir.TakeAll(context.Background(), charges...)
	if err != nil {
		t.Fatal(err)
	}
	return d, each
}

func TestTakeAllChargesAllOrNone(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	clock := weir.WithClock(func() time.Time { return now })
	shared := weir.WithStore(memory.New(memory.Options{}))
	for _, first := range weirLimits {
		t.Run(first, func(t *testing.T) {
			wide, narrow := limiter(t, first, shared, clock), limiter(t, "fixed-window 2/1h", shared, clock, weir.WithName(first))
			ask := func() (weir.Decision, []weir.Decision) {
				return takeAll(t, weir.Charge{Limiter: wide, Key: "k", Cost: 1}, weir.Charge{Limiter: narrow, Key: "k", Cost: 1})
			}
			for range 2 {
				if d, each := ask(); !d.Allowed || !each[0].Allowed || !each[1].Allowed {
					t.Fatalf("with room in both: %+v, %+v", d, each)
				}
			}
			before, err := wide.Peek(context.Background(), "k")
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				d, each := ask()
				if d.Allowed || !each[0].Allowed || each[1].Allowed || d.RetryAfter != each[1].RetryAfter {
					t.Fatalf("with room in the first only: %+v, %+v", d, each)
				}
			}
			if after, err := wide.Peek(context.Background(), "k"); err != nil || after != before {
				t.Errorf("100 denials by the other limit turned %+v into %+v, %v", before, after, err)
			}
		})
	}
}

var weirLimits = []string{
	"10/1m", "leaky-queue 10/1m", "cooldown 10/1m", "refill-bucket 10/1m burst=10", "fixed-window 10/1m", "quota-reset 10/1m",
	"sliding-log 10/1m", "sliding-window 10/1m", "sliding-buckets 10/1m", "hybrid 10/1m", "exponential 10/1m",
}

func TestTakeAllChargesOneStateOnce(t *testing.T) {
	shared := weir.WithStore(memory.New(memory.Options{}))
	a, b := limiter(t, "10/1h", shared), limiter(t, "10/60m", shared)
	d, each := takeAll(t, weir.Charge{Limiter: a, Key: "k", Cost: 2}, weir.Charge{Limiter: b, Key: "k", Cost: 3}, weir.Charge{Limiter: a, Key: "k", Cost: 1}, weir.Charge{Limiter: a, Key: "other", Cost: 1})
	if d.Remaining != 7 || each[0].Remaining != 7 || each[1].Remaining != 7 || each[3].Remaining != 9 {
		t.Errorf("2, 3 and 1 of one state, 1 of another: %+v, %+v; want 3 and 1 charged", d, each)
	}
}

func TestTakeAllNamesAllThatDeny(t *testing.T) {
	a, b, c := limiter(t, "1/1h"), limiter(t, "1/1m"), limiter(t, "5/1h")
	charges := []weir.Charge{{Limiter: a, Key: "k", Cost: 1}, {Limiter: b, Key: "k", Cost: 1}, {Limiter: c, Key: "k", Cost: 1}}
	takeAll(t, charges...)
	d, each := takeAll(t, charges...)
	if d.Allowed || each[0].Allowed || each[1].Allowed || !each[2].Allowed || each[2].Remaining != 4 {
		t.Errorf("with no room in the first two: %+v, %+v", d, each)
	}
	if d.RetryAfter != max(each[0].RetryAfter, each[1].RetryAfter) || d.Remaining != 0 {
		t.Errorf("together %+v of %+v", d, each)
	}
}

func TestTakeAllOfNothingIsAllowed(t *testing.T) {
	if d, each := takeAll(t); !d.Allowed || len(each) != 0 {
		t.Errorf("no charges: %+v, %+v", d, each)
	}
	if _, _, err := weir.TakeAll(context.Background(), weir.Charge{Limiter: limiter(t, "1/1s"), Key: "k", Cost: -1}); err == nil {
		t.Error("a negative cost is no error")
	}
}
