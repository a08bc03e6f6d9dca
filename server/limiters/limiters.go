// Package limiters keeps the limiters that requests name by their limit text, over one store.
package limiters

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store"
)

// throttleName is whose state the drop-in commands share. CL.THROTTLE and THROTTLE are one algorithm over one
// debt, and in both the key alone says whose: a client that moves from one to the other keeps what it has used.
const throttleName = "CL.THROTTLE"

// A Set gives out limiters over one store. It remembers a bounded number of them; which ones makes no difference
// to what they decide, because a limiter's state is in the store, under the limit's canonical text.
// It may be used by many goroutines at once.
type Set struct {
	store     store.Store
	limiters  *cache[*weir.Limiter] // by limit text, canonical or not
	throttles *cache[store.Binding] // by capacity, count and period
}

// New returns a Set over s.
func New(s store.Store) *Set {
	return &Set{store: s, limiters: newCache[*weir.Limiter](), throttles: newCache[store.Binding]()}
}

// Get returns the limiter of a limit text. Texts that mean the same limit share one limiter. For a text that
// it remembers, Get takes no lock and allocates nothing. The error is of a text that makes no sense, or of
// a limit that the store can't keep: a *weir.LimitError.
func (s *Set) Get(text []byte) (*weir.Limiter, error) {
	if l, ok := s.limiters.get(text); ok {
		return l, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	canonical := limit.String()
	l, ok := s.limiters.get([]byte(canonical))
	if !ok {
		if l, err = weir.New(limit, weir.WithStore(s.store)); err != nil {
			return nil, err
		}
		l = s.limiters.put(canonical, l)
	}
	if canonical != string(text) {
		l = s.limiters.put(string(text), l)
	}
	return l, nil
}

// Throttle returns the binding of a GCRA limit whose state belongs to the key alone, whatever the limit: what
// CL.THROTTLE and THROTTLE work on. The capacity is the most units admitted at one instant. For a limit that
// it remembers, Throttle takes no lock and allocates nothing. The error is a *weir.LimitError.
func (s *Set) Throttle(capacity, count int64, period time.Duration) (store.Binding, error) {
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
	b, err := s.store.Bind(store.Spec{Limit: limit, Name: throttleName, TimeDebt: true})
	if err != nil {
		return nil, err
	}
	return s.throttles.put(string(key[:]), b), nil
}
