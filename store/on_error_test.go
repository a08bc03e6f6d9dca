package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
	"pgregory.net/rapid"
)

func TestParseOnErrorIsStrict(t *testing.T) {
	for _, text := range []string{
		"", "Deny", " deny", "deny ", "local25%", "local  25%", "local 25", "local 25 %", "local -25%", "local +25%", "local 025%",
		"local .5%", "local 5.%", "local 100.0001%", "local 101%", "local 0.00001%", "local 1e1%", "local 25%\n", "local 1/4", "local 25%%",
	} {
		if o, err := store.ParseOnError(text); err == nil || o != store.Deny {
			t.Errorf("%q reads as %v", text, o)
		}
	}
	for text, want := range map[string]string{"local 0.0001%": "local 0.0001%", "local 12.50%": "local 12.5%", "local 99.9999%": "local 99.9999%"} {
		if o, err := store.ParseOnError(text); err != nil || o.String() != want {
			t.Errorf("%q reads as %v, %v", text, o, err)
		}
	}
}

func FuzzParseOnError(f *testing.F) {
	f.Add("local 25%")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := store.ParseOnError(text)
		if err != nil {
			return
		}
		if again, err := store.ParseOnError(o.String()); err != nil || again != o {
			t.Errorf("%q reads as %v, and that as %v, %v", text, o, again, err)
		}
	})
}

// n shares of 1/n are together at most 1, and miss it by less than a millionth each.
func TestLocalShareRoundsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1_000_000).Draw(t, "n")
		o := store.LocalShare(1 / float64(n))
		if sum := n * int64(o); sum > 1_000_000 || sum <= 1_000_000-n {
			t.Fatalf("%d shares are %d millionths", n, sum)
		}
	})
	for _, share := range []float64{0, -1, 1.000001, math.NaN(), math.Inf(1), math.Inf(-1), 1e-9} {
		if _, err := store.LocalShare(share).Limit(algorithm.MustParseLimit("100/1m")); err == nil {
			t.Errorf("a share of %v is accepted", share)
		}
	}
	for share, want := range map[float64]string{0.29: "local 29%", 0.57: "local 57%", 0.000001: "local 0.0001%"} {
		if got := store.LocalShare(share).String(); got != want {
			t.Errorf("%v is %s", share, got)
		}
	}
}

func TestIsFailure(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	wrong := errors.New("connection refused")
	memory := memory.New(memory.Options{})
	binding, err := memory.Bind(store.Spec{Name: "n", Limit: algorithm.MustParseLimit("1/1s")})
	if err != nil {
		t.Fatal(err)
	}
	_, twoLimits := store.TakeAll(t.Context(), []store.Part{
		{Store: memory, Binding: binding, Limit: algorithm.MustParseLimit("1/1s"), Name: "n", Key: "k"},
		{Store: memory, Binding: binding, Limit: algorithm.MustParseLimit("2/1s"), Name: "n", Key: "k"},
	}, store.OwnClock)
	if !errors.Is(twoLimits, store.ErrNothingDone) {
		t.Fatal(twoLimits)
	}
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{
		{t.Context(), nil, false},
		{t.Context(), wrong, true},
		{t.Context(), context.DeadlineExceeded, true}, // the store's own timeout
		{late, context.DeadlineExceeded, true},
		{ended, context.Canceled, false},
		{ended, wrong, false},
		{t.Context(), fmt.Errorf("%w", store.ErrUnnamed), false},
		{t.Context(), store.ErrClientTime, false},
		{t.Context(), fmt.Errorf("redis: %w", &store.KeyError{Key: "k", Err: wrong}), false},
		{t.Context(), &algorithm.LimitError{Field: "period"}, false},
		{t.Context(), twoLimits, false},
	} {
		if got := store.IsFailure(c.ctx, c.err); got != c.want {
			t.Errorf("%v of a context with %v: %v", c.err, c.ctx.Err(), got)
		}
	}
}
