// Package limiters binds the limits that requests name by their text to one store.
package limiters

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// ThrottleName is the name of the states of the drop-in commands CL.THROTTLE and THROTTLE. A client
// that changes from one to the other keeps its use.
const ThrottleName = "CL.THROTTLE"

// A Set binds limits to one store, and caches a bounded number of them. The cache has no effect on
// decisions, because all state is in the store. A Set may be used by many goroutines at once.
type Set struct {
	store     store.Store
	rules     Rules
	bounds    *cache[*store.Bound] // by limit text, canonical or not
	named     *cache[*store.Bound] // by limit text, name and whether debts are shared
	throttles *cache[*store.Bound] // by capacity, count and period
}

// New returns a Set over s without rules.
func New(s store.Store) *Set { return NewRestricted(s, Rules{}) }

// NewRestricted returns a Set over s. Limits against the rules are errors of Bind and Throttle.
func NewRestricted(s store.Store, r Rules) *Set {
	return &Set{store: s, rules: r, bounds: newCache[*store.Bound](), named: newCache[*store.Bound](), throttles: newCache[*store.Bound]()}
}

// Bind returns the bound of a limit text and a name, which may be empty. With debt, limits of one name
// share a state (store.Spec.TimeDebt). Texts of equal limits share a bound. For a cached limit, Bind
// takes no lock and allocates nothing. The error of an invalid text, and of a limit that the store
// can't keep, is a *weir.LimitError.
func (s *Set) Bind(name, text []byte, debt bool) (*store.Bound, error) {
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

func (s *Set) bindNamed(name, text []byte, debt bool) (*store.Bound, error) {
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
	var b *store.Bound
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
func (s *Set) Throttle(capacity, count int64, period time.Duration) (*store.Bound, error) {
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

func (s *Set) bind(spec store.Spec) (*store.Bound, error) {
	if err := s.rules.check(spec.Limit); err != nil {
		return nil, err
	}
	return store.Bind(s.store, spec, store.Deny)
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
