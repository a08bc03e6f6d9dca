// Package limiters keeps the limiters that requests name by their limit text, over one store.
package limiters

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
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
	bounds    *cache[*item] // by limit text, canonical or not
	named     *cache[*item] // by limit text, name and whether debts are shared
	throttles *cache[*item] // by capacity, count and period
}

// New returns a Set over s without rules.
func New(s store.Store) *Set { return NewRestricted(s, Rules{}) }

// NewRestricted returns a Set over s. Limits against the rules are errors of Get, Bind and
// Throttle.
func NewRestricted(s store.Store, r Rules) *Set {
	return &Set{store: s, rules: r, bounds: newCache[*item](), named: newCache[*item](), throttles: newCache[*item]()}
}

// An item is a limit that the store has bound, and the limiter of it.
type item struct {
	bound   *store.Bound
	limiter *weir.Limiter // nil where limits share debts
}

// Get returns the limiter of a limit text and a name, which may be empty. The error is that of Bind.
func (s *Set) Get(name string, text []byte) (*weir.Limiter, error) {
	e, err := s.item([]byte(name), text, false)
	if err != nil {
		return nil, err
	}
	return e.limiter, nil
}

// Bind returns what the store has bound for a limit text and a name, which may be empty. With debt, limits of one name share
// a state, as store.Spec.TimeDebt says. Texts that mean the same limit share a bound. For those
// that it remembers, Bind takes no lock and allocates nothing. The error is of a text that makes no sense, or of
// a limit that the store can't keep: a *weir.LimitError.
func (s *Set) Bind(name, text []byte, debt bool) (*store.Bound, error) {
	e, err := s.item(name, text, debt)
	if err != nil {
		return nil, err
	}
	return e.bound, nil
}

func (s *Set) item(name, text []byte, debt bool) (*item, error) {
	if len(name) > 0 || debt {
		return s.bindNamed(name, text, debt)
	}
	if e, ok := s.bounds.get(text); ok {
		return e, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	canonical := limit.String()
	e, ok := s.bounds.get([]byte(canonical))
	if !ok {
		if e, err = s.bind(store.Spec{Limit: limit}); err != nil {
			return nil, err
		}
		e = s.bounds.put(canonical, e)
	}
	if canonical != string(text) {
		e = s.bounds.put(string(text), e)
	}
	return e, nil
}

// mostRemembered is the most bytes of a name and a limit text that are remembered. Longer names are bound for each request.
const mostRemembered = 256

func (s *Set) bindNamed(name, text []byte, debt bool) (*item, error) {
	var room [mostRemembered]byte
	key := append(append(append(room[:0], text...), 0), name...) // no limit has a zero byte in its text
	if debt {
		key[len(text)] = 1 // nor a one
	}
	if e, ok := s.named.get(key); ok {
		return e, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	var e *item
	if canonical := limit.String(); canonical != string(text) {
		e, err = s.bindNamed(name, []byte(canonical), debt)
	} else {
		e, err = s.bind(store.Spec{Limit: limit, Name: string(name), TimeDebt: debt})
	}
	if err != nil || len(key) > mostRemembered {
		return e, err
	}
	return s.named.put(string(key), e), nil
}

// Throttle returns what the store has bound for a GCRA limit whose state belongs to the key alone, whatever the limit: what
// CL.THROTTLE and THROTTLE work on. The capacity is the most units admitted at one instant. For a limit that
// it remembers, Throttle takes no lock and allocates nothing. The error is a *weir.LimitError.
func (s *Set) Throttle(capacity, count int64, period time.Duration) (*store.Bound, error) {
	var key [24]byte
	binary.LittleEndian.PutUint64(key[0:], uint64(capacity))
	binary.LittleEndian.PutUint64(key[8:], uint64(count))
	binary.LittleEndian.PutUint64(key[16:], uint64(period))
	if e, ok := s.throttles.get(key[:]); ok {
		return e.bound, nil
	}
	if capacity < 1 { // 0 would stand for the count
		return nil, &weir.LimitError{Field: "burst", Value: strconv.FormatInt(capacity, 10), Accept: "1 or more"}
	}
	limit := weir.Limit{Algorithm: weir.GCRA, Count: count, Period: period, Burst: capacity}
	e, err := s.bind(store.Spec{Limit: limit, Name: ThrottleName, TimeDebt: true})
	if err != nil {
		return nil, err
	}
	return s.throttles.put(string(key[:]), e).bound, nil
}

func (s *Set) bind(spec store.Spec) (e *item, err error) {
	if err := s.rules.check(spec.Limit); err != nil {
		return nil, err
	}
	e = &item{}
	if e.bound, err = store.Bind(s.store, spec, store.Deny); err != nil || spec.TimeDebt {
		return e, err
	}
	opts := []weir.Option{weir.WithStore(s.store)}
	if spec.Name != "" {
		opts = append(opts, weir.WithName(spec.Name))
	}
	e.limiter, err = weir.New(spec.Limit, opts...)
	return e, err
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
