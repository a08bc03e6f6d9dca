package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/redisconn"
	"github.com/weirlimit/weir/store"
)

// DefaultTimeout bounds an operation unless the options or the URL say otherwise.
const DefaultTimeout = time.Second

// mostMaxCalls bounds MaxCalls: each connection has memory for so many.
const mostMaxCalls = 1 << 16

// Options for Open. What they leave open the URL may say. The zero value is good for most programs.
type Options struct {
	// Prefix separates programs that share a server; with "" a limiter of a name shares its states with all that use
	// the server under that name, and one without a name with all that use the same limit without one.
	Prefix string
	// TrustClientTime lets callers tell the time of an operation. The server must trust it too: else Open fails.
	TrustClientTime bool
	// Timeout bounds each operation, also when its context has a later deadline or none. 0: DefaultTimeout.
	Timeout time.Duration
	// MaxCalls is the most operations that may wait for the server at a time; more are refused at once. 0 means
	// store.DefaultMaxCalls.
	MaxCalls int
	// Lazy makes Open return without a connection. Operations fail as they do on a server that is away (see
	// [store.Breaker]) until the server can be reached and has told what it is, which is tried in the background several
	// times a second. Errors in the URL are still errors of Open.
	Lazy bool
}

// Store is a [store.Store] on a weir server. Make one with Open.
type Store struct {
	own      redisconn.Connector
	conns    redisconn.Conns
	client   atomic.Pointer[client] // nil until there is a connection, which there is not at once if the store is lazy
	address  string
	options  Options
	server   atomic.Pointer[hello]
	breaker  *store.Breaker
	circuit  *store.Circuit
	failures atomic.Int64
}

// A client is one that has connected.
type client struct{ rueidis.Client }

// errUnconnected is the error of a call before the store has connected.
var errUnconnected = errors.New("there is no connection yet")

// Open connects to the server that a URL names:
//
//	weir://[user:secret@]host[:port][?timeout=1s&max_calls=2048&lazy=true&prefix=name]
//	weirs://[user:secret@]host[:port][?ca=file&cert=file&key=file&server_name=name&insecure_skip_verify=true]
//
// weirs is for TLS: ca has the authorities of the server, if the system does not have them, and cert
// and key are the certificate of the client, whose files are read again for each connection. The port
// is 6380 unless the URL says. Open asks the server what it can do, and fails if it is no weir server. With Options.Lazy
// it returns at once.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	target, o, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if o.MaxCalls < 0 || o.MaxCalls > mostMaxCalls {
		return nil, fmt.Errorf("remote: max calls is %d; accepted: 1 to %d, or 0 for %d", o.MaxCalls, mostMaxCalls, store.DefaultMaxCalls)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = store.DefaultMaxCalls
	}
	s := &Store{address: target.host, options: o}
	s.server.Store(&hello{maxKey: defaultMaxKey, tick: time.Nanosecond})
	s.own.Option = s.clientOption(target)
	s.breaker = store.NewBreaker(store.BreakerOptions{
		Engine: "remote at " + target.host, Timeout: o.Timeout, MaxCalls: o.MaxCalls, Detach: true, Classify: classify, Probe: s.probe, Cut: s.cut,
	})
	s.circuit = s.breaker.Circuit("")
	if o.Lazy {
		s.breaker.Trip(s.circuit, errUnconnected)
		return s, nil
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("remote: no weir server can be reached at %s: %w", target.host, err), s.Close())
	}
	if err := s.greet(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// clientOption returns the options of the client.
func (s *Store) clientOption(target *address) rueidis.ClientOption {
	o := target.option(rueidis.ClientOption{
		ForceSingleClient: true,
		AlwaysRESP2:       true,
		AlwaysPipelining:  true, // a reader on each connection learns that it is gone before a command does
		DisableCache:      true,
		DisableRetry:      true,                                // a take that was sent twice might be charged twice
		ConnWriteTimeout:  max(s.options.Timeout, time.Second), // and when a connection that does not answer is given up
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		DialCtxFn:         s.conns.Dial,
	})
	o.Dialer.Timeout = o.ConnWriteTimeout
	o.RingScaleEachConn = redisconn.RingScale(s.options.MaxCalls)
	return o
}

// connect makes the client if there is none.
func (s *Store) connect(ctx context.Context) error {
	if s.client.Load() != nil {
		return nil
	}
	c, err := s.own.Connect(ctx)
	if err != nil {
		return err
	}
	s.client.Store(&client{c})
	return nil
}

// probe finds out whether the server answers, or whether it is fit in all respects.
func (s *Store) probe(ctx context.Context, _ *store.Circuit, ready bool) error {
	if err := s.connect(ctx); err != nil {
		return s.fail("open", err)
	}
	if ready {
		return s.greet(ctx)
	}
	return s.client.Load().Do(ctx, s.command("PING")).Error()
}

// cut closes the connections to a server that hangs, so that commands whose callers have gone are not sent any more.
func (s *Store) cut(*store.Circuit) { s.conns.Cut(func(string) bool { return true }) }

// Breaker implements [store.Guarded].
func (s *Store) Breaker() *store.Breaker { return s.breaker }

// Close ends the connections. A closed store must not be used.
func (s *Store) Close() error {
	s.breaker.Close()
	s.own.Leave()
	if c := s.client.Load(); c != nil {
		c.Close()
	}
	return nil
}

// TrustsClientTime implements [store.Timekeeper].
func (s *Store) TrustsClientTime() bool { return s.options.TrustClientTime }

// Counts implements [store.Counter]. What the server counts of its own store is in the server's metrics.
func (s *Store) Counts() store.Counts {
	c := store.Counts{Failures: s.failures.Load()}
	s.breaker.Count(&c)
	return c
}

// Check asks the server whether it can decide. It changes nothing. It does so also while the circuit is open.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	_, err := s.ask(ctx, "check", s.command("WEIR.PEEK", "", "1/1s", "NAME", "weir.check"))
	return err
}

// Tick returns in what the server's store counts time: nanoseconds, until a lazy store has connected.
func (s *Store) Tick() time.Duration { return s.server.Load().tick }

// Bind implements [store.Store]. It refuses what can't be kept in the ticks of the server's store. If that refuses more, the error is
// that of the operations: an [*algorithm.LimitError] too.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	compile := algorithm.Compile
	if spec.TimeDebt {
		compile = algorithm.CompileShared
	}
	p, err := compile(spec.Limit, s.Tick())
	if err != nil {
		return nil, err
	}
	b := &binding{store: s, limit: p.Limit(), text: p.Limit().String(), name: spec.Name, accounts: spec.Accounts(), debt: spec.TimeDebt}
	switch {
	case s.options.Prefix == "":
	case spec.Name == "" && !spec.TimeDebt: // which would be one name for all limits
		b.name = s.options.Prefix + "\x01" + b.text
	default:
		b.name = s.options.Prefix + "\x00" + spec.Name
	}
	if most := s.server.Load().maxKey; len(b.name) > most {
		return nil, fmt.Errorf("remote: name is %d bytes long; accepted: at most %d, with the prefix", len(b.name), most)
	}
	return s.breaker.Bind(b, func(string) *store.Circuit { return s.circuit }), nil
}
