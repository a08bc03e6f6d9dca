// Package limiters keeps the limiters that requests name by their limit text, over one store.
package limiters

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/fallback"
	"github.com/weirlimit/weir/store"
)

// ThrottleName is whose state the drop-in commands share. CL.THROTTLE and THROTTLE are one algorithm over one
// debt, and in both the key alone says whose: a client that moves from one to the other keeps what it has used.
const ThrottleName = "CL.THROTTLE"

// A Set gives out limiters over one store. It remembers a bounded number of them; which ones makes no difference
// to what they decide, because a limiter's state is in the store: under its name, whatever its limit, or if it has none under
// the limit's canonical text. It may be used by many goroutines at once.
type Set struct {
	store     store.Store
	rules     Rules
	bounds    *cache[*Bound] // by limit text, canonical or not
	named     *cache[*Bound] // by limit text, name and whether debts are shared
	throttles *cache[*Bound] // by capacity, count and period
}

// New returns a Set over s without rules.
func New(s store.Store) *Set { return NewRestricted(s, Rules{}) }

// NewRestricted returns a Set over s. Limits against the rules are errors of Get, Bind and
// Throttle.
func NewRestricted(s store.Store, r Rules) *Set {
	return &Set{store: s, rules: r, bounds: newCache[*Bound](), named: newCache[*Bound](), throttles: newCache[*Bound]()}
}

// A Bound is a limit that the store has bound, with what its Binding can do besides.
type Bound struct {
	store.Binding
	Limit    algorithm.Limit
	Capacity int64
	Batcher  store.Batcher // the Binding, or nil if that is none
	Stamper  store.Stamper // the same
	Clock    store.Clock   // the same

	limiter *weir.Limiter // nil where limits share debts
	store   store.Store
	spec    store.Spec
}

// Without returns what decides in place of the Bound, whose store returned cause. The error is cause
// under store.Deny, and if cause is no failure of the store.
func (b *Bound) Without(ctx context.Context, on store.OnError, cause error) (*fallback.Bound, error) {
	if on == store.Deny || !store.IsFailure(ctx, cause) {
		return nil, cause
	}
	f, err := fallback.Bind(b.store, b.spec, on, cause)
	if err != nil {
		return nil, errors.Join(cause, err)
	}
	return &f, nil
}

// Get returns the limiter of a limit text and a name, which may be empty. The error is that of Bind.
func (s *Set) Get(name string, text []byte) (*weir.Limiter, error) {
	b, err := s.Bind([]byte(name), text, false)
	if err != nil {
		return nil, err
	}
	return b.limiter, nil
}

// Bind returns what the store has bound for a limit text and a name, which may be empty. With debt, limits of one name share
// a state, as store.Spec.TimeDebt says. Texts that mean the same limit share a Bound. For those
// that it remembers, Bind takes no lock and allocates nothing. The error is of a text that makes no sense, or of
// a limit that the store can't keep: a *weir.LimitError.
func (s *Set) Bind(name, text []byte, debt bool) (*Bound, error) {
	if len(name) > 0 || debt {
		return s.bindNamed(name, text, debt)
	}
	if b, ok := s.bounds.get(text); ok {
		return b, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	canonical := limit.String()
	b, ok := s.bounds.get([]byte(canonical))
	if !ok {
		if b, err = s.bind(store.Spec{Limit: limit}); err != nil {
			return nil, err
		}
		b = s.bounds.put(canonical, b)
	}
	if canonical != string(text) {
		b = s.bounds.put(string(text), b)
	}
	return b, nil
}

// mostRemembered is the most bytes of a name and a limit text that are remembered. Longer names are bound for each request.
const mostRemembered = 256

func (s *Set) bindNamed(name, text []byte, debt bool) (*Bound, error) {
	var room [mostRemembered]byte
	key := append(append(append(room[:0], text...), 0), name...) // no limit has a zero byte in its text
	if debt {
		key[len(text)] = 1 // nor a one
	}
	if b, ok := s.named.get(key); ok {
		return b, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	var b *Bound
	if canonical := limit.String(); canonical != string(text) {
		b, err = s.bindNamed(name, []byte(canonical), debt)
	} else {
		b, err = s.bind(store.Spec{Limit: limit, Name: string(name), TimeDebt: debt})
	}
	if err != nil || len(key) > mostRemembered {
		return b, err
	}
	return s.named.put(string(key), b), nil
}

// Throttle returns what the store has bound for a GCRA limit whose state belongs to the key alone, whatever the limit: what
// CL.THROTTLE and THROTTLE work on. The capacity is the most units admitted at one instant. For a limit that
// it remembers, Throttle takes no lock and allocates nothing. The error is a *weir.LimitError.
func (s *Set) Throttle(capacity, count int64, period time.Duration) (*Bound, error) {
	var key [24]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(capacity))
	binary.LittleEndian.PutUint64(key[8:], uint64(count))
	binary.LittleEndian.PutUint64(key[16:], uint64(period))
	if b, ok := s.throttles.get(key[:]); ok {
		return b, nil
	}
	if capacity < 1 { // 0 would stand for the count
		return nil, &weir.LimitError{Field: "burst", Value: strconv.FormatInt(capacity, 10), Accept: "1 or more"}
	}
	limit := weir.Limit{Algorithm: weir.GCRA, Count: count, Period: period, Burst: capacity}
	b, err := s.bind(store.Spec{Limit: limit, Name: ThrottleName, TimeDebt: true})
	if err != nil {
		return nil, err
	}
	return s.throttles.put(string(key[:]), b), nil
}

func (s *Set) bind(spec store.Spec) (b *Bound, err error) {
	if err := s.rules.check(spec.Limit); err != nil {
		return nil, err
	}
	b = &Bound{Limit: spec.Limit.Canonical(), Capacity: spec.Limit.Capacity(), store: s.store, spec: spec}
	if b.Binding, err = s.store.Bind(spec); err != nil {
		return nil, err
	}
	b.Batcher, _ = b.Binding.(store.Batcher)
	b.Stamper, _ = b.Binding.(store.Stamper)
	b.Clock, _ = b.Binding.(store.Clock)
	if !spec.TimeDebt {
		opts := []weir.Option{weir.WithStore(s.store)}
		if spec.Name != "" {
			opts = append(opts, weir.WithName(spec.Name))
		}
		b.limiter, err = weir.New(spec.Limit, opts...)
	}
	return b, err
}

// Store returns the store of the limiters.
func (s *Set) Store() store.Store { return s.store }

// Tick returns in what the store counts time: a nanosecond, unless it says otherwise. Limits that are not exact in it are refused.
func (s *Set) Tick() time.Duration {
	if ticker, ok := s.store.(interface{ Tick() time.Duration }); ok {
		return ticker.Tick()
	}
	if b, err := s.store.Bind(store.Spec{Limit: algorithm.MustParseLimit("1/1s")}); err == nil {
		if inspector, ok := b.(store.Inspector); ok {
			return inspector.Program().Tick()
		}
	}
	return time.Nanosecond
}
