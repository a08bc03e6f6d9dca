package remote

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// DefaultTimeout bounds an operation unless the options or the URL say otherwise.
const DefaultTimeout = time.Second

// Options for Open. What they leave open the URL may say. The zero value is good for most programs.
type Options struct {
	// Prefix separates programs that share a server; with "" a limiter of a name shares its states with all that use
	// the server under that name, and one without a name with all that use the same limit without one.
	Prefix string
	// TrustClientTime lets callers tell the time of an operation. The server must trust it too: else Open fails.
	TrustClientTime bool
	// Timeout bounds each operation, also when its context has a later deadline or none. 0: DefaultTimeout.
	Timeout time.Duration
}

// Store is a [store.Store] on a weir server. Make one with Open.
type Store struct {
	client   rueidis.Client
	address  string
	options  Options
	server   hello
	failures atomic.Int64
}

// Open connects to the server that a URL names:
//
//	weir://[user:secret@]host[:port][?timeout=1s&prefix=name]
//	weirs://[user:secret@]host[:port][?ca=file&cert=file&key=file&server_name=name&insecure_skip_verify=true]
//
// weirs is for TLS: ca has the authorities of the server, if the system does not have them, and cert
// and key are the certificate of the client, whose files are read again for each connection. The port
// is 6380 unless the URL says. Open asks the server what it can do, and fails if it is no weir server.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	target, o, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	s := &Store{address: target.host, options: o}
	if s.client, err = dial(ctx, target, o.Timeout); err != nil {
		return nil, fmt.Errorf("remote: no weir server can be reached at %s: %w", target.host, err)
	}
	if err := s.greet(ctx); err != nil {
		s.client.Close()
		return nil, err
	}
	return s, nil
}

// dial makes a client, which connects.
func dial(ctx context.Context, target *address, timeout time.Duration) (rueidis.Client, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	option := target.option(rueidis.ClientOption{
		ForceSingleClient: true,
		AlwaysRESP2:       true,
		AlwaysPipelining:  true, // a reader on each connection learns that it is gone before a command does
		DisableCache:      true,
		DisableRetry:      true, // a take that was sent twice might be charged twice
		Dialer:            net.Dialer{Timeout: timeout},
		ConnWriteTimeout:  timeout + time.Second, // gives up a connection some time after the operations on it were
		ClientSetInfo:     rueidis.DisableClientSetInfo,
	})
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		r.err = panics.Catch(func() (err error) {
			r.client, err = rueidis.NewClient(option)
			return err
		})
		done <- r
	}()
	select {
	case r := <-done:
		panics.Raise(r.err)
		return r.client, r.err
	case <-ctx.Done():
		go func() { // it can't be told to stop
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Close ends the connections. A closed store must not be used.
func (s *Store) Close() error {
	s.client.Close()
	return nil
}

// TrustsClientTime implements [store.Timekeeper].
func (s *Store) TrustsClientTime() bool { return s.options.TrustClientTime }

// Counts implements [store.Counter]. What the server counts of its own store is in the server's metrics.
func (s *Store) Counts() store.Counts { return store.Counts{Failures: s.failures.Load()} }

// Check asks the server whether it can decide. It changes nothing.
func (s *Store) Check(ctx context.Context) error {
	_, err := s.ask(ctx, "check", s.command("WEIR.PEEK", "", "1/1s", "NAME", "weir.check"))
	return err
}

// Tick returns in what the server's store counts time.
func (s *Store) Tick() time.Duration { return s.server.tick }

// Bind implements [store.Store]. It refuses what can't be kept in the ticks of the server's store. If that refuses more, the error is
// that of the operations: an [*algorithm.LimitError] too.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	compile := algorithm.Compile
	if spec.TimeDebt {
		compile = algorithm.CompileShared
	}
	p, err := compile(spec.Limit, s.server.tick)
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
	if len(b.name) > s.server.maxKey {
		return nil, fmt.Errorf("remote: name is %d bytes long; accepted: at most %d, with the prefix", len(b.name), s.server.maxKey)
	}
	return b, nil
}
