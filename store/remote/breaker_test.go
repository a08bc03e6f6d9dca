package remote_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

// A store that is opened while its server is down serves when that is there, and again after a restart.
func TestLazy(t *testing.T) {
	d := start(t, server.Config{})
	d.stop(t)
	s := open(t, d.url()+"?lazy=true", remote.Options{})
	b := bind(t, s, limit("9/1h"))
	refused := func() {
		t.Helper()
		_, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
			t.Error(err)
		}
	}
	serves := func() {
		for s.Breaker().State().Position != store.Closed {
			time.Sleep(time.Millisecond)
		}
		if v, err := b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock); err != nil || v.Remaining != 8 {
			t.Errorf("%+v, %v", v, err)
		}
	}
	refused()
	d.run(t)
	serves()
	d.stop(t)
	for s.Breaker().State().Position == store.Closed {
		_, _ = b.Do(t.Context(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
	}
	refused()
	d.run(t) // without what it kept
	serves()
}

// A server whose store hangs is asked no more after the first timeout.
func TestServerWhoseStoreHangs(t *testing.T) {
	d := start(t, server.Config{Opened: newStuck(t)})
	s := open(t, d.url(), remote.Options{Timeout: 100 * time.Millisecond})
	b := bind(t, s, limit("9/1h"))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			_, err := b.Do(context.Background(), "k", algorithm.Op{Cost: 1}, store.OwnClock)
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c := s.Counts(); c.Opened < 1 || c.Timeouts > 50 {
		t.Errorf("%+v", c)
	}
}
