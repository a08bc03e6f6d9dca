package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// connectTimeout bounds Open and Check where their context does not.
const connectTimeout = 10 * time.Second

// A Store is a [store.Store] in a table of PostgreSQL. It is a [store.Joiner], a [store.Timekeeper], a [store.Counter] and a
// [store.Guarded], and its bindings are a [store.Stamper] and a [store.Inspector].
type Store struct {
	*swap.Store

	engine  *engine
	options Options
	owned   bool    // the pool is this store's
	dialer  *dialer // of the pool, if it is this store's
	breaker *store.Breaker
	circuit *store.Circuit // of the server

	stop  context.CancelFunc
	done  sync.WaitGroup
	close sync.Once
}

// Open returns a store on the database that a URL names:
//
//	postgres://user:password@host:5432/database?sslmode=verify-full&pool_max_conns=8&weir_table=limits.states
//
// All parameters of the URL that pgx and libpq have work. Those of this package are weir_table, weir_prefix, weir_unlogged=on, weir_timeout=500ms
// weir_max_calls=2048, weir_lazy=on and weir_migrate=off; they override the Options. There are as many connections as pool_max_conns says, by default 16 or the number
// of processors if that is more.
//
// It connects, makes the table if it is missing, and returns an error if that can't be done within ten seconds, or a right is
// missing; the error then has the statements to run. With Options.Lazy it returns at once.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	config, o, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	if _, err := o.withDefaults().check(); err != nil {
		return nil, err
	}
	dialer := newDialer(&config.ConnConfig.Config)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unreadable(url, err)
	}
	s, err := newStore(pool, o)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s.owned, s.dialer = true, dialer
	if o.Lazy {
		s.breaker.Trip(s.circuit, errUnconnected)
	} else if err := s.Check(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.start() //nolint:contextcheck // it sweeps until Close
	return s, nil
}

// New returns a store on a pool, which the caller closes after the store. It speaks to no server: the
// table is made when it is first found missing.
func New(pool *pgxpool.Pool, o Options) (*Store, error) {
	s, err := newStore(pool, o)
	if err != nil {
		return nil, err
	}
	if o.Lazy {
		s.breaker.Trip(s.circuit, errUnconnected)
	}
	s.start()
	return s, nil
}

// errUnconnected is why the circuit of a lazy store is open in the beginning.
var errUnconnected = errors.New("there was no connection yet")

func newStore(pool *pgxpool.Pool, o Options) (*Store, error) {
	o = o.withDefaults()
	t, err := o.check()
	if err != nil {
		return nil, err
	}
	e := newEngine(pool, t, o)
	s := &Store{engine: e, options: o, stop: func() {}}
	host := pool.Config().ConnConfig
	name := "postgres at " + net.JoinHostPort(host.Host, strconv.Itoa(int(host.Port)))
	s.breaker = store.NewBreaker(store.BreakerOptions{
		Engine: name, Timeout: o.Timeout, MaxCalls: o.MaxCalls, Classify: classify, Probe: s.probe, Cut: s.cut,
	})
	s.circuit = s.breaker.Circuit("")
	s.Store = swap.New(e, swap.Options{
		Engine: name, Prefix: o.Prefix, TrustClientTime: o.TrustClientTime, SharedClock: true, Timeout: o.Timeout,
		Breaker: s.breaker, Circuit: func(string) *store.Circuit { return s.circuit }, TurnAfter: o.turnAfter,
	})
	return s, nil
}

// probe looks at a state, or whether the server is fit in all respects.
func (s *Store) probe(ctx context.Context, _ *store.Circuit, ready bool) error {
	if ready {
		return s.Check(ctx)
	}
	_, err := s.engine.Load(ctx, []swap.Key{{}})
	return err
}

// cut has the connections to a server that hangs closed: those that are in use, when their statements have ended.
func (s *Store) cut(*store.Circuit) {
	if s.owned {
		s.engine.pool.Reset()
	}
}

// Breaker implements [store.Guarded].
func (s *Store) Breaker() *store.Breaker { return s.breaker }

// start begins to sweep.
func (s *Store) start() {
	if s.options.SweepEvery < 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() { newSweeper(s.engine, s.options, s.breaker).run(ctx) })
}

// Check reads a state, and checks the rights on the table, which it makes if it is missing, unless
// Options.NoMigrate is set.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return s.engine.check(ctx)
}

// Counts implements [store.Counter]. Errors of the sweeper are among the Failures.
func (s *Store) Counts() store.Counts {
	c := s.Store.Counts()
	c.Swept = s.engine.swept.Load()
	c.Failures += s.engine.failures.Load()
	return c
}

// Close lets no more operations in, waits for those that are in and for the sweeper, which takes no longer than three timeouts,
// and closes the connections if Open made them.
func (s *Store) Close() (err error) {
	s.close.Do(func() {
		s.stop()
		err = s.Store.Close()
		s.done.Wait()
		if s.owned {
			timer := time.AfterFunc(s.options.Timeout, s.dialer.close)
			s.engine.pool.Close()
			timer.Stop()
		}
	})
	return err
}
