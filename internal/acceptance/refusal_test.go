package acceptance_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

func TestPeriodWithoutUnitIsRefused(t *testing.T) {
	slip := weir.Limit{Count: 100, Period: 60}
	var refused *weir.LimitError
	if _, err := weir.New(slip); !errors.As(err, &refused) || refused.Field != "period" || refused.Value != "60ns" {
		t.Errorf("New: %v", err)
	}
	l, err := weir.New(weir.MustParseLimit("100/1m"), weir.WithName("login"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetLimit(slip); !errors.As(err, &refused) || l.Limit().Period != time.Minute {
		t.Errorf("SetLimit: %v, and the limit is %v", err, l.Limit())
	}
	for _, text := range []string{"sliding-window 3/12ns", "sliding-buckets 8/40ns cells=4", "concurrent 5 lease=30ns"} {
		if _, err := weir.New(weir.MustParseLimit(text)); err != nil {
			t.Errorf("New of %s: %v", text, err)
		}
	}
}

// The zero Limiter has no limit. Each of its methods returns an error.
func TestLimiterWithoutLimitReturnsErrors(t *testing.T) {
	for name, l := range map[string]*weir.Limiter{"nil": nil, "zero": {}} {
		t.Run(name, func(t *testing.T) {
			for method, call := range methods(t.Context(), l) {
				d, err := call()
				if err == nil || !strings.Contains(err.Error(), "accepted: a Limiter that New returned") || d != (weir.Decision{}) {
					t.Errorf("%s: %+v, %v", method, d, err)
				}
			}
			if l.Allow(t.Context(), "k") || l.Name() != "" || l.Limit() != (weir.Limit{}) {
				t.Errorf("Allow, Name or Limit: %t, %q, %v", l.Allow(t.Context(), "k"), l.Name(), l.Limit())
			}
		})
	}
}

// methods are all methods of a limiter with an error, and TakeAll.
func methods(ctx context.Context, l *weir.Limiter) map[string]func() (weir.Decision, error) {
	now := time.Now()
	alone := func(err error) (weir.Decision, error) { return weir.Decision{}, err }
	return map[string]func() (weir.Decision, error){
		"Take":       func() (weir.Decision, error) { return l.Take(ctx, "k", 1) },
		"Take of -1": func() (weir.Decision, error) { return l.Take(ctx, "k", -1) },
		"TakeAt":     func() (weir.Decision, error) { return l.TakeAt(ctx, "k", 1, now) },
		"Peek":       func() (weir.Decision, error) { return l.Peek(ctx, "k") },
		"PeekAt":     func() (weir.Decision, error) { return l.PeekAt(ctx, "k", now) },
		"Refund":     func() (weir.Decision, error) { return l.Refund(ctx, "k", 1) },
		"RefundAt":   func() (weir.Decision, error) { return l.RefundAt(ctx, "k", 1, now) },
		"TakeUpTo":   func() (weir.Decision, error) { _, d, err := l.TakeUpTo(ctx, "k", 1); return d, err },
		"TakeUpToAt": func() (weir.Decision, error) { _, d, err := l.TakeUpToAt(ctx, "k", 1, now); return d, err },
		"TakeAll": func() (weir.Decision, error) {
			d, _, err := weir.TakeAll(ctx, weir.Charge{Limiter: l, Key: "k", Cost: 1})
			return d, err
		},
		"TakeMany": func() (weir.Decision, error) {
			_, err := l.TakeMany(ctx, []weir.Request{{Key: "k", Cost: 1}}, nil)
			return alone(err)
		},
		"TakeManyAt": func() (weir.Decision, error) { _, err := l.TakeManyAt(ctx, nil, now, nil); return alone(err) },
		"Reset":      func() (weir.Decision, error) { return alone(l.Reset(ctx, "k")) },
		"Wait":       func() (weir.Decision, error) { return alone(l.Wait(ctx, "k", 1)) },
		"Wait of 0":  func() (weir.Decision, error) { return alone(l.Wait(ctx, "k", 0)) },
		"Acquire":    func() (weir.Decision, error) { _, err := l.Acquire(ctx, "k", 1); return alone(err) },
		"SetLimit":   func() (weir.Decision, error) { return alone(l.SetLimit(weir.MustParseLimit("1/1s"))) },
		"Reserve":    func() (weir.Decision, error) { _, err := l.Reserve(ctx, "k", 1); return alone(err) },
		"Hold":       func() (weir.Decision, error) { _, err := l.Hold(ctx, "k", 1, time.Minute); return alone(err) },
	}
}

func TestZeroReservationAndHoldReturnErrors(t *testing.T) {
	var r weir.Reservation
	if _, err := r.Renew(t.Context()); err == nil || r.Lease() != 0 || r.Cancel(t.Context()) != nil {
		t.Errorf("Reservation: %v, lease %v", err, r.Lease())
	}
	var h weir.Hold
	if _, err := h.Renew(t.Context()); err == nil {
		t.Error("Hold: renewed")
	}
	if _, err := h.Commit(t.Context(), 1); err == nil || h.Cancel(t.Context()) == nil {
		t.Errorf("Hold: %v", err)
	}
}

func TestEmptyNameIsRefused(t *testing.T) {
	if _, err := weir.New(weir.MustParseLimit("1/1m"), weir.WithName("")); err == nil || !strings.Contains(err.Error(), "WithName") {
		t.Errorf("New: %v", err)
	}
	if _, err := weir.New(weir.MustParseLimit("1/1m"), weir.WithName("-")); err != nil {
		t.Error(err)
	}
}

// The empty key is a key: all its requests share its budget, and no other key does.
func TestEmptyKeyIsOneKey(t *testing.T) {
	l := limiter(t, "2/1h")
	for _, want := range []bool{true, true, false} {
		if d, err := l.Take(t.Context(), "", 1); err != nil || d.Allowed != want {
			t.Errorf("Take: %+v, %v; want %t", d, err, want)
		}
	}
	for _, key := range []string{"-", " ", "\x00"} {
		if d, err := l.Take(t.Context(), key, 1); err != nil || !d.Allowed {
			t.Errorf("the budget of %q is that of the empty key", key)
		}
	}
	d, each, err := weir.TakeAll(t.Context(), weir.Charge{Limiter: l, Cost: 1}, weir.Charge{Limiter: l, Key: "k", Cost: 1})
	if err != nil || d.Allowed || each[0].Allowed || !each[1].Allowed || each[1].Remaining != 2 {
		t.Errorf("TakeAll: %+v, %+v, %v", d, each, err)
	}
}
