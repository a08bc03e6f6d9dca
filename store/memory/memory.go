package memory

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// DefaultMaxKeys is how many keys a store holds that is not told. In one-word states they take 0.8 to 1.6 GB.
const DefaultMaxKeys = 1 << 24

// Options for New. The zero value is good for most programs.
type Options struct {
	// MaxKeys is how many keys the store holds at most; 0 means DefaultMaxKeys. What is forgotten to stay below it are
	// only keys that can't be told from new ones. So that it bounds memory too, each 64 bytes of a state beyond the first
	// count as another key: sliding buckets and logs have such states.
	MaxKeys int
	// Overflow is for new keys when all MaxKeys are live.
	Overflow Overflow
	// ClockResolution, if positive, reads the time from a variable that a goroutine sets this often, instead of
	// from the operating system at each decision. The time then lags by up to the resolution, plus what
	// the scheduler adds: a key that is due may wait that much longer, and a window that is seen from outside may
	// hold what is admitted in a window longer by that. Accepted: 10µs to 1s; anything else is brought there. Close ends it.
	ClockResolution time.Duration
}

// Stats are counts of a store.
type Stats struct {
	Keys       int64 // held now; some of them may be fresh again and not yet forgotten
	Reclaimed  int64 // keys forgotten because they were fresh again
	Overflowed int64 // operations on new keys while all MaxKeys were live
}

// Store is a [store.Store] in memory. Make one with New.
type Store struct {
	clock    clock
	hasher   hasher // of keys
	owners   hasher // of limits and their names; another, so that no key can be made to cancel one out
	maxKeys  int64
	overflow Overflow

	keys, extra, reclaimed, overflowed atomic.Int64 // extra: what states count beyond their keys

	sharing sync.Mutex
	shared  map[fingerprint]*shared // by limit, under Share

	mu     sync.Mutex
	words  map[int64]*table // by the words' units per nanosecond
	states *stateTable      // for limits whose state is more than one word, and for accounts
	tables atomic.Pointer[[]reclaimer]
}

// A reclaimer forgets keys that are fresh again.
type reclaimer interface {
	// reclaim looks through a part of the table, another one with each call. It returns how many keys it forgot, and the
	// earliest time at which one of the others that it saw may be fresh.
	reclaim(now int64) (freed int, next int64)
}

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{
		clock:    newClock(o.ClockResolution),
		hasher:   newHasher(),
		owners:   newHasher(),
		maxKeys:  int64(o.MaxKeys),
		overflow: o.Overflow,
		words:    map[int64]*table{},
	}
	if s.maxKeys <= 0 {
		s.maxKeys = DefaultMaxKeys
	}
	s.tables.Store(&[]reclaimer{})
	if s.clock.stop != nil { // for who forgets Close
		runtime.AddCleanup(s, func(stop func()) { stop() }, s.clock.stop)
	}
	return s
}

// Close ends the store's clock, if it has one of its own. A closed store must not be used.
func (s *Store) Close() error {
	s.clock.close()
	return nil
}

// Stats returns counts.
func (s *Store) Stats() Stats {
	return Stats{Keys: s.keys.Load(), Reclaimed: s.reclaimed.Load(), Overflowed: s.overflowed.Load()}
}

// Bind implements [store.Store]. Every limit that makes sense is kept exactly.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	program, err := algorithm.Compile(spec.Limit, time.Nanosecond)
	if err != nil {
		return nil, err
	}
	owner := spec.Name + "\x00" + program.Limit().String()
	word, oneWord := program.Word()
	switch {
	case spec.Accounts():
		owner, oneWord = spec.Name+"\x00*", false // no limit reads so
	case spec.TimeDebt:
		owner = spec.Name + "\x00"
		if _, err := algorithm.CompileShared(spec.Limit, time.Nanosecond); err != nil {
			return nil, err
		}
		word, oneWord = program.SharedWord(s.clock.start)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pad := s.owners.hash(owner)
	if oneWord {
		return &wordBinding{
			store: s, table: s.table(word), program: program, word: word, pad: pad, capacity: program.Limit().Capacity(),
		}, nil
	}
	if s.states == nil {
		s.states = newStateTable(s)
		s.addTable(s.states)
	}
	return &stateBinding{
		store: s, table: s.states, program: program, pad: pad, capacity: program.Limit().Capacity(),
		leases: program.Limit().Algorithm == algorithm.Concurrent, named: spec.Accounts(),
	}, nil
}

func (s *Store) table(word algorithm.Word) *table {
	t := s.words[word.Unit()]
	if t == nil {
		t = newTable(s, word)
		s.words[word.Unit()] = t
		s.addTable(t)
	}
	return t
}

func (s *Store) addTable(r reclaimer) {
	tables := append([]reclaimer{r}, *s.tables.Load()...)
	s.tables.Store(&tables)
}

// now returns the time to use for an operation that was given one.
func (s *Store) now(given int64) int64 {
	if given == store.OwnClock {
		return s.clock.now()
	}
	return given
}

// reserve counts a key that is about to be added. When the store is full it first looks through a part of each
// table for keys to forget; if it finds none, it returns the earliest time at which one of those may be fresh.
func (s *Store) reserve(now int64) (ok bool, next int64) {
	for {
		n := s.keys.Load()
		if n+s.extra.Load() < s.maxKeys {
			if s.keys.CompareAndSwap(n, n+1) {
				return true, 0
			}
			continue
		}
		freed := 0
		next = math.MaxInt64
		for _, t := range *s.tables.Load() {
			f, at := t.reclaim(now)
			freed, next = freed+f, min(next, at)
		}
		if freed == 0 {
			return false, next
		}
	}
}

// forget counts keys that were taken out of a table.
func (s *Store) forget(keys int) {
	s.keys.Add(-int64(keys))
	s.reclaimed.Add(int64(keys))
}

// full reports whether there is no room for a new key.
func (s *Store) full(now int64) bool {
	ok, _ := s.reserve(now)
	if ok {
		s.keys.Add(-1)
	}
	return !ok
}
