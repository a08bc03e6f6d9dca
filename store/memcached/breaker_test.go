package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
)

// Of two servers the one that hangs costs the keys of the other nothing.
func TestHungServerOfTwo(t *testing.T) {
	hung, up := started(t), started(t)
	s := open(t, hung.URL()+","+up.Addr(), memcached.Options{Timeout: time.Second})
	b := bind(t, s, "100000/87600h")
	for i := range 50 {
		surely(t, b, fmt.Sprint(i))
	}
	hung.Pause(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 20 {
				_, err := b.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, store.OwnClock)
				if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for !onlyOpen(s, hung.Addr()) { // a busy machine may have opened the other's for a moment
		time.Sleep(time.Millisecond)
	}
	if c := s.Counts(); c.Opened < 1 || c.Calls != 0 {
		t.Errorf("%+v", c)
	}
	hung.Resume(t)
	serves(t, s)
	for i := range 50 {
		surely(t, b, fmt.Sprint(i))
	}
}

// surely takes until there is an answer: on a busy machine the timeout may be over before.
func surely(t *testing.T, b store.Binding, key string) {
	t.Helper()
	for {
		if _, err := b.Do(t.Context(), key, algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// onlyOpen reports whether the circuit of one node is open, and no other.
func onlyOpen(s store.Guarded, node string) bool {
	only := true
	for _, state := range s.Breaker().States() {
		only = only && (state.Position != store.Closed) == (state.Node == node)
	}
	return only
}

// A store that is opened while its server is down serves when that is there.
func TestLazy(t *testing.T) {
	server := started(t)
	server.Kill(t)
	s := open(t, server.URL()+"?lazy=true", memcached.Options{})
	b := bind(t, s, "10/1h")
	if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
		t.Error(err)
	}
	server.Start(t)
	serves(t, s)
	take(t, b, "key", 1, store.OwnClock)
}
