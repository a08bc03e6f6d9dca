package acceptance_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// brokenStore is a store whose engine is away.
type brokenStore struct{}

func (s brokenStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (brokenStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("the engine is away")
}

func TestAllow(t *testing.T) {
	l := limiter(t, "2/1h")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if l.Allow(ended, "k") {
		t.Error("allowed although ctx has ended")
	}
	for _, want := range []bool{true, true, false} {
		if got := l.Allow(t.Context(), "k"); got != want {
			t.Errorf("got %t, want %t", got, want)
		}
	}
	if !l.Allow(t.Context(), "other") {
		t.Error("another key is denied")
	}
	failing, err := weir.New(weir.MustParseLimit("2/1h"), weir.WithStore(brokenStore{}))
	if err != nil {
		t.Fatal(err)
	}
	if failing.Allow(t.Context(), "k") {
		t.Error("allowed although the store failed")
	}
}
