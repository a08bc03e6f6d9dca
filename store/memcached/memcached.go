// Package memcached keeps the states of limits in memcached, so that processes share them.
//
// A decision is a load and a compare-and-swap, two round trips; a denial and a peek are the load alone.
// Concurrent requests of one process for one key are coalesced (see package swap). A state is text, such
// as 1700000030000000, or 5/1m|1700000030000000 if the binding has a name, and expires when it equals
// that of a new key.
//
// memcached loses states by eviction, and all of them when it restarts; a client then has a new budget.
// Its clock can't be read, so each process decides by its own wall clock: if the clocks differ by s, a
// limit admits in any interval the units of an interval that is longer by s. See docs/memcached.md.
package memcached

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// A Store is a [store.Store] in memcached. It is a [store.Timekeeper], a [store.Counter] and a [store.Guarded], and its bindings
// are a [store.Stamper] and a [store.Inspector]. Besides limits that make no sense, Bind refuses a sliding-log or concurrent
// of so many units that its state might not fit into an item: of more than 52 thousand, if items are of a megabyte.
type Store struct {
	*swap.Store

	engine  *engine
	breaker *store.Breaker
}

// Open returns a store on the servers that a URL names:
//
//	memcached://host:port,host:port?timeout=500ms&prefix=shop&clock_skew=10s&connections=64&max_calls=2048&lazy=true
//	memcached:///path/of/a/socket
//
// The port is 11211 if it is left out. Parameters override the Options, and an unknown parameter is an
// error. There are no users and no TLS. With several servers, each key is on one of them.
//
// It reads the settings of each server, and returns an error if a server can't be reached, or was started
// without compare-and-swap. With Options.Lazy it returns at once.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	addrs, o, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return nil, err
	}
	if o.MaxCalls < 0 {
		return nil, fmt.Errorf("memcached: max calls is %d; accepted: more than 0, or 0 for %d", o.MaxCalls, store.DefaultMaxCalls)
	}
	s := &Store{engine: newEngine(addrs, o)}
	s.breaker = store.NewBreaker(store.BreakerOptions{
		Engine: "memcached", Timeout: o.Timeout, MaxCalls: o.MaxCalls, Classify: classify, Probe: s.probe,
	})
	for _, server := range s.engine.servers {
		server.circuit = s.breaker.Circuit(server.text)
	}
	s.Store = swap.New(s.engine, swap.Options{
		Engine: "memcached", Prefix: o.Prefix, TrustClientTime: o.TrustClientTime, Timeout: o.Timeout, Grace: o.ClockSkew,
		Breaker: s.breaker, Circuit: func(name string) *store.Circuit { return s.engine.servers.of(name).circuit },
	})
	if o.Lazy {
		for _, server := range s.engine.servers {
			s.breaker.Trip(server.circuit, errUnconnected)
		}
		return s, nil
	}
	if err := s.Check(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// errUnconnected is why the circuits of a lazy store are open in the beginning.
var errUnconnected = errors.New("there was no connection yet")

// probe reads the settings of a server.
func (s *Store) probe(ctx context.Context, c *store.Circuit, _ bool) error {
	for _, server := range s.engine.servers {
		if server.circuit == c {
			return s.engine.checkServer(ctx, server)
		}
	}
	return nil
}

// Breaker implements [store.Guarded]. It has a circuit for each server.
func (s *Store) Breaker() *store.Breaker { return s.breaker }

// Check reads the settings of each server. It returns an error if a server can't be reached within the
// timeout, or can't keep states.
func (s *Store) Check(ctx context.Context) error { return s.engine.check(ctx) }

// Close lets no more operations in, waits for those that are in, which takes a few timeouts if a server
// hangs, and closes the connections.
func (s *Store) Close() error {
	return errors.Join(s.Store.Close(), s.engine.client.Close())
}
