package redis_test

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
	"github.com/weirlimit/weir/store/redis"
)

const short = 300 * time.Millisecond

// fails takes from several goroutines, and wants an error of each.
func fails(t *testing.T, b store.Binding) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := b.Do(context.Background(), fmt.Sprint("key ", i), algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
				t.Errorf("key %d was decided", i)
			}
		})
	}
	wg.Wait()
}

func works(t *testing.T, b store.Binding) {
	t.Helper()
	surely(t, b, "key", 1)
}

// surely takes until there is an answer: on a busy machine a short timeout may be over before.
func surely(t *testing.T, b store.Binding, key string, cost int64) (v algorithm.Verdict) {
	t.Helper()
	until(t, func() (err error) {
		v, err = b.Do(context.Background(), key, algorithm.Op{Cost: cost}, store.OwnClock)
		return err
	})
	return v
}

func TestServerIsKilled(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{Timeout: short})
	b := bind(t, s, t.Name(), "1000/1h")
	works(t, b)
	before := s.Counts().Failures
	server.Kill(t)
	fails(t, b)
	if c := s.Counts(); c.Failures-before+c.Refused < 20 || c.Opened < 1 {
		t.Errorf("of 20 failures %+v is counted", c)
	}
	_, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
	if text := fmt.Sprint(err); !strings.Contains(text, "redis at "+server.Addr()+": the store is unavailable since ") || !strings.Contains(text, "nothing was changed") {
		t.Error(err)
	}
	if _, err = b.Do(t.Context(), "key", algorithm.Op{Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: 1000}, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
		t.Error(err)
	}
	if _, err := s.TakeAll(t.Context(), []store.Part{part(t, s, t.Name(), "1/1h", "a", 1)}, store.OwnClock, nil); err == nil {
		t.Error("a request passed on no server")
	}
	if _, err := b.(store.Batcher).TakeMany(t.Context(), []store.KeyCost{{Key: "a", Cost: 1}}, store.OwnClock, nil); err == nil {
		t.Error("a batch passed on no server")
	}
	server.Start(t)
	works(t, b)
}

func TestServerIsPaused(t *testing.T) {
	server, other := testengine.Redis(t), testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{Timeout: short})
	b, unaffected := bind(t, s, t.Name(), "1000/1h"), bind(t, openURL(t, other.URL(), redis.Options{Timeout: short}), t.Name(), "1000/1h")
	works(t, b)
	server.Pause(t)
	fails(t, b)
	works(t, unaffected)
	for _, op := range []algorithm.Op{{Cost: 1}, {Kind: algorithm.Reserve, ID: 1, Cost: 1, Life: 1000}} {
		if _, err := b.Do(t.Context(), "key", op, store.OwnClock); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
			t.Error(err)
		}
	}
	if c := s.Counts(); c.Opened < 1 || c.Timeouts < 3 || c.Timeouts > 20 {
		t.Errorf("%+v", c)
	}
	server.Resume(t)
	works(t, b)
}

func TestContextEnds(t *testing.T) {
	server := testengine.Redis(t)
	b := bind(t, openURL(t, server.URL(), redis.Options{Timeout: time.Hour}), t.Name(), "1000/1h")
	works(t, b)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := take(t, b, "key", 0)
	if _, err := b.Do(ended, "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if v := take(t, b, "key", 0); v.Remaining != before.Remaining {
		t.Error("a context that had ended was charged")
	}
	server.Pause(t)
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Do(soon, "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	server.Resume(t)
	works(t, b)
}

func TestServerThatIsAway(t *testing.T) {
	server := testengine.Redis(t)
	server.Kill(t)
	_, err := redis.Open(t.Context(), "redis://user:secret@"+server.Addr(), redis.Options{Timeout: patience})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), server.Addr()) {
		t.Error(err)
	}
	server.Start(t)
	server.Pause(t)
	soon, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	if _, err := redis.Open(soon, server.URL(), redis.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	server.Resume(t)
}
