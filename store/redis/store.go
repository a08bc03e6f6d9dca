package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/redisconn"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// DefaultTimeout is how long an operation may take with a store that is not told.
const DefaultTimeout = time.Second

// Options for New and Open. The zero value is good for most programs.
type Options struct {
	// Prefix begins the names of all keys, and separates programs that share a server; "" is store.DefaultPrefix.
	Prefix string
	// TrustClientTime lets callers tell the time of an operation. All that use a key must then have one clock. States expire by the server's
	// clock, a day later than they would by the time told. The server's time is used where none is told.
	TrustClientTime bool
	// Timeout bounds each operation, also when its context has a later deadline or none; 0 means DefaultTimeout. It includes
	// the time to connect again, all commands of an operation, and what a TakeAll over several slots gives back.
	Timeout time.Duration
	// MaxCalls is the most operations that may wait for the server, or for one node of a cluster, at a time; more are
	// refused at once. 0 means store.DefaultMaxCalls.
	MaxCalls int
	// Lazy makes Open return without a connection. Operations fail as they do on a server that is away (see
	// [store.Breaker]) until the server can be reached and passes Check, which is tried in the background several times a
	// second. Errors in the URL are still errors of Open.
	Lazy bool
}

// A client is one that has connected.
type client struct{ rueidis.Client }

// errUnconnected is the error of a call before the store has connected.
var errUnconnected = errors.New("there is no connection yet")

// Store is a [store.Store] in Redis or Valkey. Make one with Open or New. It is a [store.Joiner],
// [store.Timekeeper], [store.Counter] and [store.Guarded], and its bindings are a [store.Stamper],
// [store.Inspector] and [store.Batcher].
//
// Bind refuses limits beyond the exact numbers of a script: a count or a burst of more than 2^51, and a
// linear limit whose interval is a fraction of microseconds with a denominator of more than 2^52. Every
// count up to 4e12 is accepted. TakeAll is one script call on a single server, and if all keys are in one
// slot of a cluster, as all limits of one key are; it is two commands if a part needs a load and a swap.
// Over several slots of a cluster see docs/redis.md.
type Store struct {
	*swap.Store

	client  atomic.Pointer[client] // nil until there is a connection, which there is not at once if the store is lazy
	server  string                 // where, for errors
	prefix  string
	timeout time.Duration
	cluster bool

	breaker *store.Breaker
	whole   *store.Circuit        // of the server, or of a cluster whose nodes are not known yet
	nodes   atomic.Pointer[nodes] // of a cluster

	own    *redisconn.Connector // of a client that Open makes, and that is to be closed with the store
	conns  redisconn.Conns
	closed atomic.Bool // Close has closed the client

	healed, reloads, failures atomic.Int64 // by the script; of it; of the nodes of a cluster that could not be read
}

// New returns a store over a client of yours, which it does not close. Caching in the client is of no use to it, and nor are
// retries: the script is never sent again by a client that leaves EVALSHA and EVAL, which write, alone.
// Leave its ConnLifetime at 0: when a connection expires and its server hangs, rueidis sends
// commands a second time. It speaks to no server; see Check.
func New(c rueidis.Client, o Options) (*Store, error) {
	if c == nil {
		return nil, errors.New("redis: client is nil; accepted: one of rueidis.NewClient")
	}
	if o.Lazy {
		return nil, errors.New("redis: lazy is true for a client that has connected; accepted: false, or Open")
	}
	s, err := newStore("a server", c.Mode() == rueidis.ClientModeCluster, o)
	if err == nil {
		s.client.Store(&client{c})
	}
	return s, err
}

// newStore returns a store without a client.
func newStore(server string, cluster bool, o Options) (*Store, error) {
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("redis: timeout is %v; accepted: more than 0, or 0 for %v", o.Timeout, DefaultTimeout)
	}
	if o.MaxCalls < 0 || o.MaxCalls > mostMaxCalls {
		return nil, fmt.Errorf("redis: max calls is %d; accepted: 1 to %d, or 0 for %d", o.MaxCalls, mostMaxCalls, store.DefaultMaxCalls)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	s := &Store{server: server, prefix: o.Prefix, timeout: o.Timeout, cluster: cluster}
	s.breaker = store.NewBreaker(store.BreakerOptions{
		Engine: "redis at " + server, Timeout: o.Timeout, MaxCalls: o.MaxCalls, Detach: true, Classify: classify, Probe: s.probe, Cut: s.cut,
	})
	s.whole = s.breaker.Circuit("")
	s.Store = swap.New(engine{s}, swap.Options{
		Engine: "redis at " + server, Prefix: o.Prefix, TrustClientTime: o.TrustClientTime, SharedClock: true, Timeout: o.Timeout,
		Breaker: s.breaker, Circuit: s.circuit, Direct: true,
	})
	return s, nil
}

// Close ends the probes of the breaker, closes the connections if Open made them, and waits for the
// operations that are coalesced.
func (s *Store) Close() error {
	s.breaker.Close()
	if s.own != nil {
		s.closed.Store(true)
		s.own.Leave()
		if c := s.client.Load(); c != nil {
			c.Close()
		}
	}
	return s.Store.Close()
}

// Breaker implements [store.Guarded].
func (s *Store) Breaker() *store.Breaker { return s.breaker }

// Counts implements [store.Counter].
func (s *Store) Counts() store.Counts {
	c := s.Store.Counts()
	c.Healed += s.healed.Load()
	c.Failures += s.failures.Load()
	c.Reloads = s.reloads.Load()
	return c
}

// Check reports whether the server can be reached, is recent enough, and grants all rights that the store needs. Open calls
// it. It writes, and removes, a key of its own. It does so also while a circuit is open.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := s.run(ctx, "check", []string{s.probeName("{%check}")}, []string{"", "check"})
	return err
}

// ask calls the script, and returns its reply.
func (s *Store) ask(ctx context.Context, verb string, keys, args []string) (reply, error) {
	text, err := s.run(ctx, verb, keys, args)
	if err != nil {
		return reply{}, err
	}
	return readReply(text)
}

// load calls the script for the values of keys.
func (s *Store) load(ctx context.Context, verb string, keys []string) (reply, error) {
	return s.ask(ctx, verb, keys, []string{"", "load"})
}

// run calls the script. verb says what for, in errors.
func (s *Store) run(ctx context.Context, verb string, keys, args []string) (string, error) {
	text, err := s.call(ctx, keys, args)
	for n := 1; n < tries && (between(err) || ofAnother(ctx, err)) && pause(ctx, n); n++ {
		text, err = s.call(ctx, keys, args)
	}
	if err != nil {
		return "", s.fail(verb, keys, err)
	}
	return text, nil
}

func (s *Store) call(ctx context.Context, keys, args []string) (string, error) {
	if s.closed.Load() {
		return "", errClosed
	}
	client := s.client.Load()
	if client == nil {
		return "", errUnconnected
	}
	n := int64(len(keys))
	text, err := client.Do(ctx, client.B().Evalsha().Sha1(scriptSHA).Numkeys(n).Key(keys...).Arg(args...).Build()).ToString()
	if forgotten(err) {
		s.reloads.Add(1)
		text, err = client.Do(ctx, client.B().Eval().Script(script).Numkeys(n).Key(keys...).Arg(args...).Build()).ToString()
	}
	return text, err
}

// between reports whether an error is that a slot is between two nodes. The script has then not run.
func between(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsTryAgain()
}

// ofAnother reports whether an error is that another caller gave up while it dialled the connection that all share. Nothing was sent.
func ofAnother(ctx context.Context, err error) bool {
	var op *net.OpError
	return ctx.Err() == nil && errors.As(err, &op) && op.Op == "dial" &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// forgotten reports whether an error is that the server does not know the script. It has then done nothing.
func forgotten(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}
