package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// decided are limits of the algorithms that have statements, with numbers that are hard on them.
var decided = []string{
	"100/1m", "7/1s burst=3", "1000003/24h", "100000/1s burst=1", "3000000/1s burst=7", "1/1h", "9223372036854775807/24h burst=4000000000000000000",
	"999999999999999989/1s burst=999999999999999989", "gcra 10/1s burst=20", "leaky-bucket 4/1s", "cooldown 3/1m", "min-interval 7/1s",
	"leaky-queue 4/1s queue=10", "leaky-queue 7/1s queue=3", "refill-bucket 50/24h burst=200", "refill-bucket 7/1s burst=3",
	"refill-bucket 9223372036854775807/1s burst=9223372036854775807", "fixed-window 10/1s", "fixed-window 9223372036854775807/1h", "quota-reset 10/1s",
	"quota-reset 1000/1h", "sliding-window 10/1s", "sliding-window 1000000007/24h", "sliding-window 9223372036854775807/24h",
	"calendar 10/day", "calendar 100/month tz=Europe/Berlin anchor=31", "calendar 7/week tz=America/Sao_Paulo", "calendar 9223372036854775807/year",
}

// testEngine is an engine on a table of the test's own.
func testEngine(t testing.TB, o Options) *engine {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), SharedServer(t).URL()+"&pool_max_conns=16")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.Table = tableOf(t)
	o = o.withDefaults()
	name, err := o.check()
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(pool, name, o)
	if err := e.check(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// A walk takes random steps on one name, and holds the engine to the program: in every verdict, and in every state that it leaves.
type walk struct {
	*rand.Rand
	engine  *engine
	program *algorithm.Program
	name    string
	head    string
	now     int64 // µs
	state   []int64
	healed  int
}

// move moves the time on, mostly by something like the interval between units, and sometimes back.
func (w *walk) move() {
	l := w.program.Limit()
	period := int64(min(l.Period, 30*24*time.Hour) / time.Microsecond) // of years there would be too many
	switch w.IntN(20) {
	case 0:
		w.now -= w.Int64N(period) + 1
	case 1:
		w.now -= w.Int64N(5*period) + 1
	case 2:
		w.now += w.Int64N(3 * period)
	case 3:
		w.now += period * (w.Int64N(3) + 1)
	case 4, 5:
		w.now += period / (w.Int64N(9) + 1)
	case 6:
		w.now++
	case 7, 8, 9:
	default:
		w.now += w.Int64N(2 * max(1, period/l.Count))
	}
}

func (w *walk) cost() int64 {
	capacity := w.program.Limit().Capacity()
	switch w.IntN(6) {
	case 0:
		return 1 + w.Int64N(capacity)
	case 1:
		return capacity - w.Int64N(min(3, capacity))
	case 2:
		return 1 + w.Int64N(min(3, capacity))
	}
	return 1
}

func (w *walk) step(ctx context.Context) error {
	w.move()
	op := algorithm.Op{Kind: algorithm.Take, Cost: w.cost()}
	switch w.IntN(40) {
	case 0:
		op = algorithm.Op{Kind: algorithm.Reset}
	case 1:
		return w.swap(ctx, algorithm.Op{Kind: algorithm.Refund, Cost: w.cost()})
	}
	before := slices.Clone(w.state)
	v, at, done, err := w.engine.decideOne(ctx, w.name, w.head, w.program, op, w.now)
	if err != nil || done && at != w.now {
		return fmt.Errorf("%+v at %d in %v: at %d, %w", op, w.now, before, at, err)
	}
	if left := op.Kind == algorithm.Take && w.leaves(op, before); done == left {
		return fmt.Errorf("%+v at %d in %v: decided is %v, to be left is %v", op, w.now, before, done, left)
	} else if left {
		return w.swap(ctx, op)
	}
	var want algorithm.Result
	w.state, want = w.program.Apply(w.state, op, w.now)
	if v != want.Verdict() {
		return fmt.Errorf("%+v at %d in %v: %+v, want %+v", op, w.now, before, v, want.Verdict())
	}
	if w.IntN(4) > 0 {
		return nil
	}
	cell, err := w.engine.loadOne(ctx, w.name)
	if err != nil || !slices.Equal(cell.State, w.state) {
		return fmt.Errorf("%+v at %d makes of %v: %v, want %v, %w", op, w.now, before, cell.State, w.state, err)
	}
	return nil
}

// leaves reports whether a Take in a state is to be left to who loads it.
func (w *walk) leaves(op algorithm.Op, state []int64) bool {
	if w.engine.heals && w.program.Heal(slices.Clone(state), w.now) {
		w.healed++
		return true
	}
	if edges := w.program.Windows(w.now); len(edges) > 0 && len(state) > 0 && state[0] >= edges[2] {
		_, r := w.program.Apply(slices.Clone(state), op, w.now)
		return r.Allowed // in a later window
	}
	return false
}

// swap takes a step as package swap does.
func (w *walk) swap(ctx context.Context, op algorithm.Op) error {
	if w.engine.heals {
		w.program.Heal(w.state, w.now)
	}
	cell, err := w.engine.loadOne(ctx, w.name)
	if err != nil {
		return err
	}
	w.state, _ = w.program.Apply(w.state, op, w.now)
	if w.record().Empty() && cell.Empty() {
		return nil
	}
	if swapped, err := w.engine.swapOne(ctx, w.name, cell, w.record(), time.Hour); err != nil || !swapped {
		return fmt.Errorf("%v for %v is not swapped in: %w", w.state, cell.State, err)
	}
	for _, other := range []swap.Record{
		{Head: w.head, State: []int64{77}}, {Head: w.head, State: append([]int64{1}, w.state...)}, {Head: w.head + "1", State: w.state},
	} {
		if swapped, err := w.engine.swapOne(ctx, w.name, swap.Cell{Record: other}, swap.Record{State: []int64{1}}, time.Hour); err != nil || swapped {
			return fmt.Errorf("a swap for %v, which is not there: %v, %w", other, swapped, err)
		}
		if swapped, err := w.engine.swapOne(ctx, w.name, swap.Cell{Record: other}, swap.Record{}, 0); err != nil || swapped {
			return fmt.Errorf("a removal of %v, which is not there: %v, %w", other, swapped, err)
		}
	}
	return nil
}

// record is what is kept.
func (w *walk) record() swap.Record {
	if len(w.state) == 0 {
		return swap.Record{}
	}
	return swap.Record{Head: w.head, State: w.state}
}

func programs(t testing.TB, text string) []*algorithm.Program {
	t.Helper()
	spec := store.Spec{Limit: algorithm.MustParseLimit(text)}
	p, err := store.CompileMicroseconds(spec)
	if err != nil {
		t.Fatal(err)
	}
	all := []*algorithm.Program{p}
	spec.TimeDebt = true
	if p, err := store.CompileMicroseconds(spec); err == nil {
		all = append(all, p)
	}
	return all
}

// Both as where callers tell the time, and as where it is the server's, and states that are too far ahead are healed.
func TestStatementsDoWhatProgramDoes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	steps := 2500
	if testing.Short() {
		steps = 250
	}
	for _, trusted := range []bool{true, false} {
		t.Run(fmt.Sprintf("trusted_%v", trusted), func(t *testing.T) {
			e := testEngine(t, Options{TrustClientTime: trusted})
			for n, text := range decided {
				for m, p := range programs(t, text) {
					t.Run(text, func(t *testing.T) {
						t.Parallel()
						w := &walk{
							Rand: rand.New(rand.NewPCG(seed, uint64(n*2+m))), engine: e, program: p, name: fmt.Sprint(n, ".", m),
							now: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC).UnixMicro(),
						}
						if m == 0 && n%2 == 0 {
							w.head = p.Head()
						}
						steps := steps
						if p.Limit().Algorithm.Linear() { // there are many of them
							steps /= 4
						}
						for i := range steps {
							if err := w.step(t.Context()); err != nil {
								t.Fatalf("step %d: %v", i, err)
							}
						}
						if trusted && w.healed > 0 {
							t.Errorf("%d states were left to healing, where nothing is healed", w.healed)
						}
					})
				}
			}
		})
	}
}

// A window of the calendar is one at the server's time. If this process's clock is so far off that it can't say when that begins and ends, the
// statement does nothing.
func TestWindowsOfAnotherClock(t *testing.T) {
	e := testEngine(t, Options{})
	p := programs(t, "10/day")[0]
	for i, off := range []time.Duration{0, 23 * time.Hour, -23 * time.Hour, 72 * time.Hour, -72 * time.Hour} {
		for _, name := range []string{"k", fmt.Sprint("fresh ", i)} {
			e.clock = func() time.Time { return time.Now().Add(off) }
			v, at, done, err := e.decideOne(t.Context(), name, "", p, algorithm.Op{Cost: 1}, store.OwnClock)
			if far := off.Abs() > 24*time.Hour; err != nil || done == far {
				t.Errorf("%v off, %s: decided is %v, %v", off, name, done, err)
			}
			cell, err := e.loadOne(t.Context(), name)
			if err != nil || len(cell.State) == 0 == done && name != "k" {
				t.Errorf("%v off, %s: %v, %v", off, name, cell.State, err)
			}
			if windows := p.Windows(at); done && (v.Granted != 1 || cell.State[0] != windows[1]) {
				t.Errorf("%v off, %s: %+v in %v, want one of %v", off, name, v, cell.State, windows)
			}
		}
	}
}

// The row lives as long as the state matters: exactly, if nothing comes between the clock and the end of the statement.
func TestRowsLiveAsLongAsTheyMatter(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		t.Run(fmt.Sprintf("trusted_%v", trusted), func(t *testing.T) {
			e := testEngine(t, Options{TrustClientTime: trusted})
			extra := time.Duration(0)
			if trusted {
				extra = 24 * time.Hour
			}
			for n, text := range decided {
				for m, p := range programs(t, text) {
					name := fmt.Sprint(n, ".", m)
					for range 2 {
						v, at, done, err := e.decideOne(t.Context(), name, "", p, algorithm.Op{Cost: 1}, store.OwnClock)
						if err != nil || !done {
							t.Fatalf("%s: %v, %v", text, done, err)
						}
						if v.Granted < 0 {
							continue
						}
						var expires int64
						sql := `SELECT (extract(epoch FROM expires) * 1000000)::bigint FROM TABLE WHERE name = $1`
						if err := e.pool.QueryRow(t.Context(), e.table.in(sql), name).Scan(&expires); err != nil {
							t.Fatal(err)
						}
						life := time.Duration(expires-at) * time.Microsecond
						if least := v.Reset + extra; life < least || life > least+time.Second {
							t.Errorf("%s: a row lives for %v after a decision with %+v", text, life, v)
						}
					}
				}
			}
		})
	}
}

// A denial and a peek write nothing at all: no row version, and nothing to the log.
func TestDenialWritesNothing(t *testing.T) {
	e := testEngine(t, Options{})
	written := func() (lsn string) {
		if err := e.pool.QueryRow(t.Context(), `SELECT pg_current_wal_insert_lsn()::text`).Scan(&lsn); err != nil {
			t.Fatal(err)
		}
		return lsn
	}
	row := func(name string) (version string) {
		sql := `SELECT coalesce((SELECT xmin::text || ' ' || xmax::text || ' ' || ctid::text FROM TABLE WHERE name = $1), '')`
		if err := e.pool.QueryRow(t.Context(), e.table.in(sql), name).Scan(&version); err != nil {
			t.Fatal(err)
		}
		return version
	}
	for _, text := range []string{"3/1h", "7/1h burst=3", "fixed-window 3/1h", "quota-reset 3/1h", "refill-bucket 3/1h", "sliding-window 3/1h", "calendar 3/year anchor=06-01"} {
		p := programs(t, text)[0]
		if _, _, done, err := e.decideOne(t.Context(), text, "", p, algorithm.Op{Cost: p.Limit().Capacity()}, store.OwnClock); err != nil || !done {
			t.Fatal(text, done, err)
		}
		quiet := false
		for range 20 { // the server writes for reasons of its own now and then
			version, before := row(text), written()
			v, _, done, err := e.decideOne(t.Context(), text, "", p, algorithm.Op{Cost: 1}, store.OwnClock)
			if err != nil || !done || v.Granted >= 0 {
				t.Fatalf("%s: %+v, %v, %v", text, v, done, err)
			}
			if _, err := e.loadOne(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			if now := row(text); now != version || now == "" {
				t.Fatalf("%s: a denial makes the row %q of %q", text, now, version)
			}
			if quiet = written() == before; quiet {
				break
			}
		}
		if !quiet {
			t.Errorf("%s: a denial writes to the log", text)
		}
	}
}

// Updates stay in their pages, and change no index.
func TestUpdatesAreHeapOnly(t *testing.T) {
	e := testEngine(t, Options{})
	p := programs(t, "1000000/1h")[0]
	for i := range 1000 {
		if _, _, _, err := e.decideOne(t.Context(), fmt.Sprint(i%10), "", p, algorithm.Op{Cost: 1}, store.OwnClock); err != nil {
			t.Fatal(err)
		}
	}
	var updates, hot int64
	// The server publishes its statistics with a delay; the test polls.
	for ; updates < 900; time.Sleep(50 * time.Millisecond) {
		sql := `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = $1::regclass`
		if err := e.pool.QueryRow(t.Context(), sql, string(e.table)).Scan(&updates, &hot); err != nil {
			t.Fatal(err)
		}
	}
	if hot < updates*9/10 {
		t.Errorf("%d of %d updates were heap-only", hot, updates)
	}
}
