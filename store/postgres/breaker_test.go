package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// A server that hangs under load is waited for by the calls of the first timeout only, and joint takes have one timeout.
func TestHungServerUnderLoad(t *testing.T) {
	server := testengine.Postgres(t)
	s := open(t, server.URL(), postgres.Options{Timeout: time.Second, MaxCalls: 200})
	b := bind(t, s, "100000/87600h")
	other := bind(t, s, "999/1000h")
	recovers(t, b)
	server.Pause(t)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = b.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, store.OwnClock)
			} else {
				parts := []store.Part{
					{Store: s, Binding: b, Limit: algorithm.MustParseLimit("100000/87600h"), Key: "a", Cost: 1},
					{Store: s, Binding: other, Limit: algorithm.MustParseLimit("999/1000h"), Key: "b", Cost: 1},
				}
				_, err = s.TakeAll(context.Background(), parts, store.OwnClock, nil)
			}
			if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOverloaded) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for range 100 {
		if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
			t.Fatal(err)
		}
	}
	c := s.Counts()
	if c.Opened < 1 || c.Timeouts > 200 || c.Overflows+c.Refused < 200 || c.Calls != 0 {
		t.Errorf("%+v", c)
	}
	server.Resume(t)
	recovers(t, b)
}

// A store that is opened while its server is down serves when that is there.
func TestLazy(t *testing.T) {
	server := testengine.Postgres(t)
	server.Kill(t)
	s := open(t, server.URL(), postgres.Options{Timeout: time.Second, Lazy: true})
	b := bind(t, s, "100/1000h")
	if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
		t.Error(err)
	}
	waitFor(func() bool { return strings.Contains(fmt.Sprint(s.Breaker().State().Cause), "refused") })
	server.Start(t)
	recovers(t, b)
	if _, err := postgres.Open(t.Context(), "postgres://h/db?weir_lazy=maybe", postgres.Options{}); err == nil || !strings.Contains(err.Error(), "on or off") {
		t.Error(err)
	}
	if _, err := postgres.Open(t.Context(), "postgres://h/db?weir_max_calls=0", postgres.Options{}); err == nil {
		t.Error("no calls at all are accepted")
	}
}
