package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

const short = 300 * time.Millisecond

// fail takes from 20 keys at a time, and wants an error of each.
func fail(t *testing.T, b store.Binding) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := b.Do(context.Background(), fmt.Sprint("other ", i), algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
				t.Errorf("other %d was decided", i)
			}
		})
	}
	wg.Wait()
}

// recovers waits until there are decisions again, and for the pool to have got rid of all that is dead.
func recovers(t *testing.T, b store.Binding) {
	t.Helper()
	for i := range 20 {
		waitFor(func() bool {
			_, err := b.Do(context.Background(), fmt.Sprint("key ", i), algorithm.Op{Cost: 1}, store.OwnClock)
			return err == nil
		})
	}
}

func TestServerThatEnds(t *testing.T) {
	server := testengine.Postgres(t)
	s := open(t, server.URL(), postgres.Options{Timeout: short})
	b := bind(t, s, "100/1000h")
	recovers(t, b)
	server.Kill(t)
	fail(t, b)
	if c := s.Counts(); c.Failures+c.Refused < 20 || c.Opened < 1 {
		t.Errorf("%+v was counted, want 20 failures and refusals, or more", c)
	}
	if err := s.Check(t.Context()); err == nil {
		t.Error("Check says that all is well")
	}
	server.Start(t)
	recovers(t, b)
	if v := do(t, b, "key 0", algorithm.Op{}, store.OwnClock); v.Remaining > 98 {
		t.Errorf("%d remaining after two takes and a crash of the server", v.Remaining)
	}
}

func TestServerThatHangs(t *testing.T) {
	server := testengine.Postgres(t)
	b := bind(t, open(t, server.URL(), postgres.Options{Timeout: short}), "100/1h")
	recovers(t, b)
	server.Pause(t)
	fail(t, b)
	server.Resume(t)
	recovers(t, b)
}

// An unlogged table is empty after a crash, and outlives a restart.
func TestUnloggedTableAfterACrash(t *testing.T) {
	server := testengine.Postgres(t)
	s := open(t, server.URL()+"&weir_unlogged=on", postgres.Options{Timeout: patience})
	b := bind(t, s, "100/1000h")
	if kind := query[string](t, server.URL(), `SELECT relpersistence::text FROM pg_class WHERE relname = 'weir_states'`); kind != "u" {
		t.Errorf("the table is of persistence %q", kind)
	}
	take(t, b, "k", 40, store.OwnClock)
	server.Restart(t)
	recovers(t, b)
	if v := do(t, b, "k", algorithm.Op{}, store.OwnClock); v.Remaining != 60 {
		t.Errorf("%d remaining after a restart, want 60", v.Remaining)
	}
	server.Kill(t)
	server.Start(t)
	recovers(t, b)
	if v := do(t, b, "k", algorithm.Op{}, store.OwnClock); v.Remaining != 100 {
		t.Errorf("%d remaining after a crash, want 100", v.Remaining)
	}
}

// A row that another client has locked holds up that key, for the timeout, and no other.
func TestLockedRow(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	b := bind(t, open(t, url, o), "100/1h")
	recovers(t, b)
	unlock := lock(t, url, o.Table, "key 0")
	hasty := o
	hasty.Timeout = short
	if _, err := bind(t, open(t, url, hasty), "100/1h").Do(t.Context(), "key 0", algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
		t.Error("a locked row was decided")
	}
	if v, err := b.Do(t.Context(), "key 0", algorithm.Op{}, store.OwnClock); err != nil || v.Remaining > 99 {
		t.Errorf("a peek of a locked row: %+v, %v", v, err)
	}
	for i := 1; i < 5; i++ {
		take(t, b, fmt.Sprint("key ", i), 1, store.OwnClock)
	}
	unlock()
	recovers(t, b)
}

// Rows that another client has locked hold up their keys, and no other, while there are fewer of them than connections.
func TestLockedRows(t *testing.T) {
	const locked = 12
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url, o)
	b := bind(t, s, "100/1h")
	for i := range locked {
		take(t, b, fmt.Sprint("locked ", i), 1, store.OwnClock)
	}
	unlock := lock(t, url, o.Table, "locked %")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range locked {
		wg.Go(func() {
			if _, err := b.Do(ctx, fmt.Sprint("locked ", i), algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
				t.Errorf("locked %d was decided", i)
			}
		})
	}
	waitFor(func() bool {
		return query[int](t, url, `SELECT count(*) FROM pg_locks AS wait WHERE NOT granted AND EXISTS (
			SELECT FROM pg_locks WHERE pid = wait.pid AND relation = $1::regclass)`, o.Table) == locked
	})
	for i := range 8 {
		take(t, b, fmt.Sprint("free ", i), 1, store.OwnClock)
	}
	cancel()
	wg.Wait()
	unlock()
}

// A caller who has given up takes nothing.
func TestCancelledContext(t *testing.T) {
	b := bind(t, open(t, postgres.SharedServer(t).URL(), mine(t)), "100/1h")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Do(ctx, "k", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if v := take(t, b, "k", 0, store.OwnClock); v.Remaining != 100 {
		t.Errorf("%+v", v)
	}
}

// Where transactions are serializable, statements fail that met another, and are tried again.
func TestSerializable(t *testing.T) {
	url, o := postgres.SharedServer(t).URL()+"&default_transaction_isolation=serializable", mine(t)
	var wg sync.WaitGroup
	var granted atomic.Int64
	for range 4 {
		s := open(t, url, o)
		for i := range 60 {
			b := bind(t, s, []string{"40/1000h", "quota-reset 40/1000h", "sliding-log 40/1000h"}[i%3])
			wg.Go(func() { granted.Add(max(0, take(t, b, "k", 1, store.OwnClock).Granted)) })
		}
	}
	wg.Wait()
	if granted.Load() != 3*40 {
		t.Errorf("%d were admitted, want 120", granted.Load())
	}
	granted.Store(0)
	for i := range 4 {
		s := open(t, url, o)
		parts := []store.Part{part(t, s, "40/1000h", "k"), part(t, s, "sliding-log 1000/1000h", fmt.Sprint(i))}
		for range 20 {
			wg.Go(func() {
				outcomes, err := store.TakeAll(t.Context(), parts, store.OwnClock)
				if err != nil {
					t.Error(err)
				} else if outcomes[0].Granted == 1 && outcomes[1].Granted == 1 {
					granted.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if granted.Load() > 40 || granted.Load() == 0 {
		t.Errorf("%d requests of two limits were admitted, want up to 40", granted.Load())
	}
}

// The ways in which pgx can send a statement. Those without a prepared one work behind poolers that share connections.
func TestModesOfPgx(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		s := open(t, postgres.SharedServer(t).URL()+"&default_query_exec_mode="+mode, trusted(t))
		for _, text := range limits[:len(limits)-1] { // the last counts denials
			b := bind(t, s, text)
			capacity := algorithm.MustParseLimit(text).Capacity()
			for _, step := range []struct {
				op        algorithm.Op
				remaining int64
			}{
				{algorithm.Op{}, capacity},
				{algorithm.Op{Cost: capacity}, 0},
				{algorithm.Op{Cost: 1}, 0},
				{algorithm.Op{Kind: algorithm.Refund, Cost: capacity}, capacity},
				{algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 2 * capacity}, 0},
				{algorithm.Op{Kind: algorithm.Reset}, capacity},
			} {
				if v := do(t, b, "k", step.op, noon); v.Remaining != step.remaining {
					t.Errorf("%s, %s, %+v: %+v, want %d remaining", mode, text, step.op, v, step.remaining)
				}
			}
		}
		parts := []store.Part{part(t, s, "fixed-window 2/1h", "k"), part(t, s, "sliding-log 10/1h", "k"), part(t, s, "10/month", "k")}
		for i := range int64(3) {
			outcomes, err := store.TakeAll(t.Context(), parts, noon)
			if err != nil || outcomes[0].Granted < 0 != (i == 2) || outcomes[1].Remaining != 10-min(2, i+1) || outcomes[2].Remaining != outcomes[1].Remaining {
				t.Errorf("%s: %+v, %v", mode, outcomes, err)
			}
		}
	}
}
