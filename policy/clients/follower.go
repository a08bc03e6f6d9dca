package clients

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/policy"
)

// Options are what a Follower may be told. The zero Options are good.
type Options struct {
	// Policies, if not nil, check each client and use each next table before it takes effect, such
	// as a *policy.Set. They are called by one goroutine at a time, and log changes and refusals:
	// the follower then logs both at the level of debugging only.
	Policies Policies
	// Snapshot, if not empty, is the path of a file in which the clients are kept, and from which a Follower starts if the database is away.
	Snapshot string
	// Poll is how often to ask the database whether something changed, 10ms to 1h. 0 is a second for PostgreSQL, which also tells of changes by
	// itself, and 250ms for SQLite.
	Poll time.Duration
	Log  *slog.Logger     // nil for slog.Default()
	Now  func() time.Time // the clock of valid_from and valid_until; nil for time.Now
	// Panicked, if not nil, is called with the value of a panic in the Follower's goroutines,
	// within the recovery. The clients stay as they are, and the task is tried again. Nil: the Log
	// gets the value and the stack.
	Panicked func(task string, value any)
}

// Policies decide which clients can be used.
type Policies interface {
	// ClientCheck returns a function that returns the reason to refuse a client with a grant, or
	// nil. The row of a refused client is a bad row.
	ClientCheck() func(client string, g *policy.Grant) error
	// UseClients uses clients, or refuses all of them with an error: then nothing changes.
	UseClients(c policy.Clients) error
}

// A Follower keeps the clients of a database in memory, and up with it. It is a [policy.Clients] itself.
type Follower struct {
	at       *location
	policies Policies   // nil: none
	told     slog.Level // of changes and refusals by policies
	poll     time.Duration
	log      *slog.Logger
	now      func() time.Time
	current  atomic.Pointer[Table]
	shown    shown
	stop     context.CancelFunc
	panicked func(task string, value any)
	stopped  sync.WaitGroup
	snapshot string
	unsaved  chan saved // at most one: the latest

	// Of the goroutine that follows.
	mark    mark     // of the table in use
	bad     backoff  // of the bad rows of the table in use
	refused *refused // what was offered since, if it was not taken
}

// A refused change is one that is not in effect.
type refused struct {
	backoff

	at    mark
	table *Table // nil if none could be made
}

// Follow loads the clients of the database at a URL, see [Open], and follows it until Close; ctx is for the loading. If it can't be
// loaded, it starts from the snapshot, and if that is not there either, it is an error.
//
// A file of SQLite that is not there is made if there is no snapshot: then it never was. While following it is never made anew.
func Follow(ctx context.Context, databaseURL string, o Options) (*Follower, error) {
	at, err := parseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	f, err := newFollower(at, o)
	if err != nil {
		return nil, err
	}
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.stopped.Go(func() { f.run(life) })
	if f.snapshot != "" {
		f.stopped.Go(func() { f.save(life) })
	}
	return f, nil
}

func newFollower(at *location, o Options) (*Follower, error) {
	f := &Follower{at: at, policies: o.Policies, poll: o.Poll, log: o.Log, now: o.Now, snapshot: o.Snapshot, unsaved: make(chan saved, 1)}
	switch {
	case o.Poll == 0 && at.postgres != nil:
		f.poll = time.Second
	case o.Poll == 0:
		f.poll = 250 * time.Millisecond
	case o.Poll < 10*time.Millisecond || o.Poll > time.Hour:
		return nil, fmt.Errorf("clients: poll is %s; accepted: 10ms to 1h", o.Poll)
	}
	f.told = slog.LevelDebug
	if f.policies == nil {
		f.told = slog.LevelInfo
	}
	if f.log == nil {
		f.log = slog.Default()
	}
	if f.now == nil {
		f.now = time.Now
	}
	if f.panicked = o.Panicked; f.panicked == nil {
		f.panicked = func(task string, value any) {
			f.log.Error("panic", "task", task, "panic", fmt.Sprint(value), "stack", string(debug.Stack()))
		}
	}
	f.shown.status.Database = at.shown
	return f, nil
}

// start loads the clients, from where it can.
func (f *Follower) start(ctx context.Context) error {
	err := f.load(ctx)
	if err == nil || f.snapshot == "" || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	t, h, other := readSnapshot(f.snapshot, f.now, f.check())
	if other == nil {
		t.source = f.at.shown
		other = f.use(t)
	}
	if other != nil {
		return errors.Join(err, other)
	}
	f.take(t, h.At)
	f.shown.started(t, h, f.now())
	if len(t.bad) > 0 {
		f.logBadRows(ctx, t)
	}
	f.log.Warn("clients: started from the snapshot, not from the database", "snapshot", f.snapshot, "written", h.Written,
		"age", f.now().Sub(h.Written).Round(time.Second), "of", h.Database, "clients", t.Len(), "error", err)
	if h.Database != f.at.shown {
		f.log.Warn("clients: the snapshot is of another database; its clients are in effect until the database is back", "snapshot", f.snapshot,
			"of", h.Database, "database", f.at.shown)
	}
	return nil
}

// check returns the check of the clients of one table, or nil.
func (f *Follower) check() check {
	if f.policies == nil {
		return nil
	}
	return f.policies.ClientCheck()
}

func (f *Follower) use(t *Table) error {
	if f.policies == nil {
		return nil
	}
	return f.policies.UseClients(t)
}

// load is the first loading from the database.
func (f *Follower) load(ctx context.Context) error {
	_, missing := os.Stat(f.snapshot)
	d, err := f.at.open(ctx, f.snapshot == "" || errors.Is(missing, fs.ErrNotExist))
	if err != nil {
		f.shown.away(err, f.now())
		return err
	}
	if files := append(d.Exposed(), exposed(f.snapshot)...); len(files) > 0 {
		f.log.Warn("clients: other users of this machine may read the names of clients, which may be secrets: chmod 600", "files", files)
	}
	err = f.step(ctx, d)
	if err = errors.Join(err, d.Close()); err != nil {
		err = f.at.explain(err)
		f.shown.away(err, f.now())
		return err
	}
	return f.shown.refusal()
}

// Close stops following. The clients stay as they are.
func (f *Follower) Close() error {
	f.stop()
	f.stopped.Wait()
	return nil
}

// Grant implements [policy.Clients].
func (f *Follower) Grant(client string) (*policy.Grant, bool) { return f.current.Load().Grant(client) }

// Unqualified returns the number of clients without a source in their name, as [Table.Unqualified]
// does.
func (f *Follower) Unqualified() int { return f.current.Load().Unqualified() }

// Grants implements [policy.Clients].
func (f *Follower) Grants(each func(*policy.Grant) error) error { return f.current.Load().Grants(each) }

// Table returns the clients as they are now.
func (f *Follower) Table() *Table { return f.current.Load() }

// run follows until ctx ends, through whatever goes wrong.
func (f *Follower) run(ctx context.Context) {
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := f.session(ctx, func() { wait = firstWait })
		if ctx.Err() != nil {
			return
		}
		if f.shown.away(err, f.now()) {
			f.log.Error("clients: the database is away; the clients stay as they are", "database", f.at.shown, "error", err)
		}
		if !sleep(ctx, f.jitter(wait)) {
			return
		}
	}
}

// jitter spreads what many processes would else do at one time.
func (f *Follower) jitter(d time.Duration) time.Duration { return d/2 + rand.N(d) } //nolint:gosec // not a secret

// session follows on one connection, until something goes wrong with it.
func (f *Follower) session(ctx context.Context, well func()) (err error) {
	defer func() {
		if v := recover(); v != nil { // no program could recover from it
			f.panicked("clients: follow", v)
			err = fmt.Errorf("clients: following panicked: %v", v)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d, err := f.at.open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	woken := make(chan struct{}, 1)
	if f.at.postgres != nil {
		var listening sync.WaitGroup
		defer listening.Wait()
		defer cancel()
		listening.Go(func() {
			defer func() {
				if v := recover(); v != nil { // polling goes on
					f.panicked("clients: listen", v)
				}
			}()
			f.listen(ctx, func() {
				select {
				case woken <- struct{}{}:
				default: // it will look anyway
				}
			})
		})
	}
	tick := time.NewTicker(f.poll)
	defer tick.Stop()
	for {
		began := time.Now()
		if err := f.step(ctx, d); err != nil {
			return f.at.explain(err)
		}
		well()
		if f.shown.back() {
			f.log.Info("clients: the database is back", "database", f.at.shown)
		}
		if !sleep(ctx, rest(time.Since(began))) {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
		case <-tick.C:
		}
	}
}

// step takes over what changed since the last, if it can. The error is the database's; what it has that is broken is refused.
func (f *Follower) step(ctx context.Context, d *Database) error {
	at, err := d.head(ctx)
	if err != nil {
		return err
	}
	now := f.current.Load()
	switch {
	case now != nil && at == f.mark:
		f.refused = nil
		f.shown.mended()
		f.retry(ctx, now)
		return nil
	case f.refused == nil || at != f.refused.at:
	case !f.refused.due():
		return nil
	case f.refused.table != nil:
		f.offer(ctx, f.refused.table, at)
		return nil
	}
	began := time.Now()
	t, at, err := f.next(ctx, d, now)
	if broken, ok := errors.AsType[brokenError](err); ok {
		f.refuse(ctx, at, nil, began, broken)
		return nil
	}
	if err != nil {
		return err
	}
	f.offer(ctx, t, at)
	return nil
}

// next returns the table that the database has now.
func (f *Follower) next(ctx context.Context, d *Database, now *Table) (*Table, mark, error) {
	if now == nil {
		t, at, err := d.load(ctx, f.now, nil, f.check())
		if err == nil {
			t, err = f.keep(t)
		}
		return t, at, err
	}
	changed, at, ok, err := d.changes(ctx, f.mark)
	if err != nil {
		return nil, at, err
	}
	if !ok {
		return d.load(ctx, f.now, now, f.check())
	}
	t, err := now.with(changed, f.check())
	return t, at, err
}

// offer lets a table take effect, if it is not refused.
func (f *Follower) offer(ctx context.Context, t *Table, at mark) {
	began := time.Now()
	t.source = f.at.shown
	if err := f.use(t); err != nil {
		f.refuse(ctx, at, t, began, err)
		return
	}
	f.take(t, at)
	f.log.Log(ctx, f.told, "clients: in effect", "database", f.at.shown, "clients", t.Len(), "change", at.Number)
	if f.shown.took(t, f.now()) {
		f.logBadRows(ctx, t)
	}
	if f.snapshot == "" {
		return
	}
	select {
	case <-f.unsaved: // it is older
	default:
	}
	f.unsaved <- saved{at, t}
}

func (f *Follower) take(t *Table, at mark) {
	f.current.Store(t)
	f.mark, f.refused, f.bad = at, nil, backoff{}
}

// refuse records a change that is not in effect, and sets the time of its next check. table is nil
// if none could be made.
func (f *Follower) refuse(ctx context.Context, at mark, table *Table, began time.Time, err error) {
	r := &refused{at: at, table: table}
	if f.refused != nil && f.refused.at == at {
		r.pause = f.refused.pause
	}
	r.next(began)
	f.refused = r
	if f.shown.refused(err, f.now()) {
		level := slog.LevelError
		if table != nil {
			level = f.told
		}
		f.log.Log(ctx, level, "clients: a change is refused as a whole; the clients stay as they are", "database", f.at.shown, "change", at.Number, "error", err)
	}
}
