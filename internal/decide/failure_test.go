package decide

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// An absentStore is one store among several.
type absentStore struct {
	store.Store
	_ []int // so that values can't be compared
}

// Bind binds nothing.
func (absentStore) Bind(store.Spec) (store.Binding, error) { return noBinding{}, nil }

type noBinding struct{ store.Binding }

func boundOf(t *testing.T, s store.Store, spec store.Spec) *store.Bound {
	t.Helper()
	b, err := store.Bind(s, spec, store.Deny)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var errAway = errors.New("the engine is away")

// The bindings of limiters that a program makes without end do not grow without end, and the states
// of those that are not cached are kept all the same.
func TestBindingsAreBounded(t *testing.T) {
	s := &absentStore{}
	take := func(i int64) bool {
		spec := store.Spec{Limit: algorithm.Limit{Count: 1, Period: time.Hour + time.Duration(i)}}
		b, err := Without(context.Background(), boundOf(t, s, spec), store.Local, errAway)
		if err != nil {
			t.Fatal(err)
		}
		v, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
		if err != nil {
			t.Fatal(err)
		}
		return b.Decision(v).Allowed
	}
	for _, want := range []bool{true, false} {
		for i := range int64(maxBounds + 100) {
			if take(i) != want {
				t.Fatalf("%d: allowed: %v", i, !want)
			}
		}
	}
	l := localOf(s)
	if n := len(l.bounds); n > maxBounds {
		t.Errorf("%d bounds are cached", n)
	}
	if most := l.memory.Stats().MaxBytes; most != maxBytes {
		t.Errorf("the memory is bounded by %d bytes", most)
	}
}

// Stores have local limits of their own, also those of types that can't be compared.
func TestStoresHaveLocalLimits(t *testing.T) {
	one, other := &absentStore{}, &absentStore{}
	if l := localOf(one); l != localOf(one) || l == localOf(other) {
		t.Error("two stores share local limits")
	}
	if localOf(*one) != localOf(*other) {
		t.Error("stores that can't be compared have none in common")
	}
}

// Names, limits without a name and shared debts have states of their own.
func TestLocalStatesAreApart(t *testing.T) {
	s := &absentStore{}
	limit := algorithm.MustParseLimit("1/1h")
	for _, spec := range []store.Spec{
		{Limit: limit}, {Limit: limit, Name: "1/1h"}, {Limit: limit, Name: "l:1/1h"}, {Limit: limit, Name: "1/1h", TimeDebt: true}, {Limit: limit, TimeDebt: true},
	} {
		b, err := Without(context.Background(), boundOf(t, s, spec), store.Local, errAway)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock); err != nil || v.Granted != 1 {
			t.Errorf("%+v: %+v, %v", spec, v, err)
		}
	}
}

// An open store allows any cost, also without a capacity for it.
func TestOpen(t *testing.T) {
	bound := boundOf(t, &absentStore{}, store.Spec{Limit: algorithm.MustParseLimit("2/1h")})
	b, err := Without(context.Background(), bound, store.Allow, errAway)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []algorithm.Kind{algorithm.Take, algorithm.TakeUpTo, algorithm.Reserve, algorithm.Commit, algorithm.Refund, algorithm.Reset} {
		v, err := b.Do(context.Background(), "k", algorithm.Op{Kind: kind, Cost: 5}, store.OwnClock)
		if d := b.Decision(v); err != nil || !d.Allowed || !d.Failed || d.Local || d.Remaining != 2 {
			t.Errorf("%v: %+v, %v", kind, d, err)
		}
	}
	if _, err := Without(context.Background(), bound, store.Deny, errAway); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}
