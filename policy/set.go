package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// Options for a Set. The zero value is good for a program that limits in its own memory.
type Options struct {
	// Store keeps what was used. nil is a store in memory of the set's own.
	Store store.Store
	// Clients say which client has which plan. nil is nobody has one; see [Set.UseClients].
	Clients Clients
	// Log is told of changes that are taken and of those that are refused. nil is nobody is.
	Log *slog.Logger
	// Clock tells the time instead of the store, for traffic of another time. nil is the store's own clock. A store that decides by its engine's clock does not take it.
	Clock func() time.Time
	// TokenKeys encrypt the tokens of decisions: the first encrypts, and all decrypt. Up to 4 keys
	// of 32 or more random bytes. Sets over one store settle each other's tokens if they share the
	// keys. Empty: a random key, which is lost with the Set, so that no other Set accepts its
	// tokens.
	TokenKeys [][]byte
}

// A Set decides requests by the policies of a configuration, which can be replaced while it works.
// It may be used by many goroutines at once. New makes one: a nil Set and the zero Set have no
// policies, and their methods return an error or nothing.
type Set struct {
	store store.Store
	clock func() time.Time
	log   *slog.Logger
	keys  tokenKeys

	current atomic.Pointer[rules]
	offers  atomic.Int64 // how often there were other clients
	skipped decide.Sampler

	mu     sync.Mutex // of changes
	config *Config
	counts map[string]*counts
	status Status
}

// errNoPolicies is the error of the methods of a nil Set and of the zero Set.
var errNoPolicies = errors.New("policy: the Set is nil or the zero Set, and has no policies; accepted: a Set that New returned")

// load returns the rules in use, or nil if there are none.
func (s *Set) load() *rules {
	if s == nil {
		return nil
	}
	return s.current.Load()
}

// now returns the time of a decision.
func (s *Set) now() int64 {
	if s == nil || s.clock == nil {
		return store.OwnClock
	}
	if at, ok := store.Nanoseconds(s.clock()); ok {
		return at
	}
	return store.OwnClock
}

// New returns a set. It refuses a configuration that makes no sense, with an error as [Parse]'s, and one with a limit that the store refuses.
func New(c *Config, o Options) (*Set, error) {
	s := &Set{store: o.Store, clock: o.Clock, log: o.Log, counts: map[string]*counts{}}
	var err error
	if s.keys, err = newTokenKeys(o.TokenKeys); err != nil {
		return nil, err
	}
	if s.store == nil {
		s.store = memory.New(memory.Options{})
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if keeper, ok := s.store.(store.Timekeeper); ok && s.clock != nil && !keeper.TrustsClientTime() {
		return nil, fmt.Errorf("weir: Clock: %w", store.ErrClientTime)
	}
	if err := s.apply(c, o.Clients); err != nil {
		return nil, err
	}
	s.status.Config.update(c.file, nil)
	if o.Clients != nil {
		s.status.Clients.update(sourceOf(o.Clients), nil)
	}
	return s, nil
}

// Load is [Parse] and [New] of a file.
func Load(ctx context.Context, path string, o Options) (*Set, error) {
	c, err := readFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return New(c, o)
}

func readFile(ctx context.Context, path string) (*Config, error) {
	data, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	return Parse(data, path)
}

// apply makes a configuration and clients the ones in use, or changes nothing. The caller holds mu, or is alone.
func (s *Set) apply(c *Config, clients Clients) error {
	p := &problems{config: c}
	v := &rules{inventory: compile(c, p), clients: clients}
	if len(p.list) == 0 {
		s.bindAll(v.inventory, p)
	}
	if err := p.err(); err != nil {
		return err
	}
	p.warnChosen(v.inventory)
	v.warnings = p.sortedWarnings()
	var before map[store.Spec]*store.Bound
	if old := s.current.Load(); old != nil {
		before = old.own
	}
	own, err := s.bindClients(v.inventory, clients, before)
	if err != nil {
		return err
	}
	v.own = own
	for i := range v.rules {
		r := &v.rules[i]
		if s.counts[r.name] == nil {
			s.counts[r.name] = new(counts)
		}
		r.counts = s.counts[r.name]
	}
	for name := range s.counts {
		if v.byName[name] == nil {
			delete(s.counts, name)
		}
	}
	s.config = c
	s.current.Store(v)
	logWarnings(s.log, v.warnings)
	return nil
}

// Warnings returns the warnings about the configuration in use, in the order of the file. They must
// not be changed.
func (s *Set) Warnings() []Warning {
	v := s.load()
	if v == nil {
		return nil
	}
	return v.warnings
}

// Replace makes a configuration the one in use, as a whole: if anything of it is wrong, or the clients in use would have a plan that it does not have, it changes
// nothing and returns why. Requests that are being decided finish under the one before. What was used stays used, where names stay.
func (s *Set) Replace(c *Config) error {
	if s.load() == nil {
		return errNoPolicies
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.apply(c, s.clients())
	s.note(&s.status.Config, "policies", c.file, err)
	return err
}

// UseClients makes clients the ones in use. It refuses them, and changes nothing, if any has a plan that no policy has, or limits that can't be.
// Clients that are a fmt.Stringer say with it where they are from, for the status and the log.
func (s *Set) UseClients(clients Clients) error {
	if s.load() == nil {
		return errNoPolicies
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	own, err := s.bindClients(old.inventory, clients, old.own)
	if err == nil {
		s.current.Store(&rules{inventory: old.inventory, clients: clients, own: own})
		s.offers.Add(1)
	}
	s.note(&s.status.Clients, "clients", sourceOf(clients), err)
	return err
}

// sourceOf returns where clients are from, if they say it.
func sourceOf(clients Clients) string {
	if c, ok := clients.(fmt.Stringer); ok {
		return c.String()
	}
	return ""
}

func (s *Set) clients() Clients { return s.current.Load().clients }

// Config returns the configuration in use. It must not be changed.
func (s *Set) Config() *Config {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// note keeps and logs what became of a change.
func (s *Set) note(status *SourceStatus, what, source string, err error) {
	before := status.Err
	status.update(source, err)
	if err != nil {
		if before != nil && before.Error() == err.Error() { // it is offered again and again
			return
		}
		s.log.Error("a change was refused; what was in use stays", "of", what, "source", source, "error", err)
		return
	}
	s.log.Info("a change is in use", "of", what, "source", source)
}
