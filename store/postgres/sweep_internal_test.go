package postgres

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// eager sweeps without mercy.
var eager = sweeping{batch: 10}

// closedBreaker has no circuit that is open.
var closedBreaker = store.NewBreaker(store.BreakerOptions{})

func testSweeper(t testing.TB, e *engine, every time.Duration) *sweeper {
	t.Helper()
	return newSweeper(e, Options{SweepEvery: every, sweeping: eager}, closedBreaker)
}

// put adds rows that expire in so much time.
func put(t testing.TB, e *engine, prefix string, rows int, life time.Duration) {
	t.Helper()
	sql := e.table.in(`INSERT INTO TABLE SELECT $1 || i, '{1}', ` + expires("$2") + ` FROM generate_series(1, $3) AS i`)
	if _, err := e.pool.Exec(t.Context(), sql, prefix, life.Microseconds(), rows); err != nil {
		t.Fatal(err)
	}
}

func rows(t testing.TB, e *engine, prefix string) (n int) {
	t.Helper()
	sql := e.table.in(`SELECT count(*) FROM TABLE WHERE name LIKE $1 || '%'`)
	if err := e.pool.QueryRow(t.Context(), sql, prefix).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweepRemovesWhatHasExpired(t *testing.T) {
	e := testEngine(t, Options{})
	put(t, e, "a:gone", 45, -time.Second)
	put(t, e, "b:here", 35, time.Hour)
	put(t, e, "z:gone", 15, -time.Second)
	if err := testSweeper(t, e, time.Microsecond).sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b, z := rows(t, e, "a:"), rows(t, e, "b:"), rows(t, e, "z:"); a != 0 || b != 35 || z != 0 || e.swept.Load() != 60 {
		t.Errorf("%d, %d and %d rows are left, want 0, 35 and 0; %d were counted", a, b, z, e.swept.Load())
	}
	put(t, e, "c:lately", 5, -time.Second) // a clock may be set back
	if err := newSweeper(e, Options{SweepEvery: time.Microsecond, sweeping: gentle}, closedBreaker).sweep(t.Context()); err != nil || rows(t, e, "c:") != 5 {
		t.Errorf("%d of 5 rows that expired a second ago are left, %v", rows(t, e, "c:"), err)
	}
}

// A row that is being written is skipped, without a wait; when it has been written it is not expired any more.
func TestSweepLeavesWhatIsWritten(t *testing.T) {
	e := testEngine(t, Options{})
	put(t, e, "a", 20, -time.Second)
	tx, err := e.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), e.table.in(`UPDATE TABLE SET words = '{2}', expires = now() + interval '1 h' WHERE name = 'a1'`)); err != nil {
		t.Fatal(err)
	}
	s := testSweeper(t, e, time.Microsecond)
	for range 2 {
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, e, "a"); n != 1 {
			t.Errorf("%d rows are left, want 1", n)
		}
		if err := tx.Commit(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Fatal(err)
		}
	}
}

// However many processes there are, one of them sweeps, once in an interval. When it dies another does.
func TestOneProcessSweeps(t *testing.T) {
	e := testEngine(t, Options{})
	sweepers := make([]*sweeper, 8)
	for i := range sweepers {
		sweepers[i] = testSweeper(t, e, time.Hour)
	}
	for round := range 3 {
		put(t, e, fmt.Sprint("a", round, "."), 5, -time.Second)
		var wg sync.WaitGroup
		for _, s := range sweepers {
			wg.Go(func() {
				if err := s.sweep(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want := 5
		if round == 1 { // within the interval
			want = 0
		}
		if n := e.swept.Swap(0); n != int64(want) {
			t.Errorf("round %d: %d rows were removed, want %d", round, n, want)
		}
		switch round {
		case 1:
			if _, err := e.pool.Exec(t.Context(), e.table.in(`UPDATE TABLE SET expires = now() - interval '1 s' WHERE name = 'sweep'; `)); err != nil {
				t.Fatal(err)
			}
			if _, err := e.pool.Exec(t.Context(), e.table.in(`DELETE FROM TABLE WHERE name <> 'sweep'`)); err != nil {
				t.Fatal(err)
			}
		case 2:
			// Who lost the lease stops.
			put(t, e, "b", 5, -time.Second)
			if _, looked, err := testSweeper(t, e, time.Hour).batch(t.Context(), ""); err != nil || looked != 0 || rows(t, e, "b") != 5 {
				t.Errorf("without the lease %d rows were looked at, %d are left, %v", looked, rows(t, e, "b"), err)
			}
		}
	}
}

func TestSweeperOutlivesErrors(t *testing.T) {
	e := testEngine(t, Options{})
	s, err := New(e.pool, Options{Table: tableOf(t), SweepEvery: time.Millisecond, sweeping: eager})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for s.Counts().Failures <= 2 { // of a sweep without a table
		time.Sleep(time.Millisecond)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, s.engine, "a", 35, -time.Second)
	for s.Counts().Swept < 35 {
		time.Sleep(time.Millisecond)
	}
}

// Pitfall S15: a sweeper that never rests takes nothing away that matters. If it did, more would pass than the limit lets.
func TestS15SweepAgainstTakes(t *testing.T) {
	e := testEngine(t, Options{})
	for _, text := range []string{"100/10ms", "fixed-window 100/10ms", "quota-reset 100/10ms", "refill-bucket 100/10ms", "sliding-log 100/10ms"} {
		s, err := New(e.pool, Options{Table: tableOf(t), SweepEvery: time.Nanosecond, Timeout: 10 * time.Minute, sweeping: eager})
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
		if err != nil {
			t.Fatal(err)
		}
		var admitted, first, last atomic.Int64
		first.Store(1 << 62)
		hammer := func(until time.Time) {
			for time.Now().Before(until) {
				v, at, err := b.(store.Stamper).DoStamped(t.Context(), "k", algorithm.Op{Cost: 25}, store.OwnClock)
				if err != nil {
					t.Error(err)
					return
				}
				admitted.Add(max(0, v.Granted))
				for f := first.Load(); at < f && !first.CompareAndSwap(f, at); {
					f = first.Load()
				}
				for l := last.Load(); at > l && !last.CompareAndSwap(l, at); {
					l = last.Load()
				}
			}
		}
		rounds := 20
		if testing.Short() {
			rounds = 5
		}
		// with pauses, in which there is something to sweep
		for round := 0; round < rounds || s.Counts().Swept < 5; round++ {
			until := time.Now().Add(30 * time.Millisecond)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { hammer(until) })
			}
			wg.Wait()
			swept := s.Counts().Swept
			for end := time.Now().Add(100 * time.Millisecond); s.Counts().Swept == swept && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
		windows := (last.Load()-first.Load())/int64(10*time.Millisecond) + 2
		if most := 100 * windows; admitted.Load() > most {
			t.Errorf("%s: %d were admitted in %d windows; %d rows were swept", text, admitted.Load(), windows, s.Counts().Swept)
		}
		t.Logf("%s: %d in %d windows, %d swept", text, admitted.Load(), windows, s.Counts().Swept)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
