package memory

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Options for New. The zero value is good for most programs.
type Options struct {
	// MaxBytes bounds the memory of the store's keys: their states, reservations, limits and
	// previous limits, and their tables. Limits without keys are not counted. 0 means DefaultMaxBytes; less than MinMaxBytes means MinMaxBytes.
	// An operation without memory is denied and changes nothing. Only keys whose state equals the
	// state of a new key are evicted.
	//
	// Each name, and each limit without a name, may grow while it uses less than four times the
	// free memory: so a single name uses at most four fifths, and a flood of its keys leaves room
	// for the rest.
	MaxBytes int64
	// MaxKeys, if positive, bounds the number of keys too, in equal shares. 0: MaxBytes is the only
	// bound.
	MaxKeys int
	// Overflow is the decision on new keys for which there is no room.
	Overflow Overflow
	// ClockResolution, if positive, reads the time from a variable that a goroutine sets this often, instead of
	// from the operating system at each decision. The time then lags by up to the resolution, plus what
	// the scheduler adds: a key that is due may wait that much longer, and a window that is seen from outside may
	// hold what is admitted in a window longer by that. Accepted: 10µs to 1s; anything else is brought there. Close ends it.
	ClockResolution time.Duration
}

// Stats are counts of a store.
type Stats struct {
	Keys       int64 // held now; some of them may equal new keys and not be evicted yet
	Bytes      int64 // of counted memory now, for a while at most a sixteenth more than MaxBytes
	MaxBytes   int64
	Reclaimed  int64 // keys evicted because their state equalled the state of a new key
	Overflowed int64 // operations on new keys for which there was no room
	Refused    int64 // operations on keys without memory for their larger record
}

// Store is a [store.Store] in memory. Make one with New.
type Store struct {
	clock  clock
	hasher hasher // of keys
	// of limits and their names; a separate hasher, so no key can cancel a limit out
	limits   hasher
	overflow Overflow

	room       room
	sharedRoom room // of budgets, under Share
	owners     ownerTable
	programs   programTable
	reclaiming sync.Mutex

	reclaimed, overflowed, refused atomic.Int64

	sharing sync.Mutex
	shared  map[fingerprint]*shared // by limit, under Share

	mu     sync.Mutex
	words  map[int64]*table // by the words' units per nanosecond
	states *stateTable      // for limits whose state is more than one word, and for accounts
	tables atomic.Pointer[[]reclaimer]
}

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{
		clock:    newClock(o.ClockResolution),
		hasher:   newHasher(),
		limits:   newHasher(),
		overflow: o.Overflow,
		words:    map[int64]*table{},
	}
	s.room.init(o)
	if o.Overflow == Share {
		s.sharedRoom.maxBytes = s.room.maxBytes / sharedPart
		s.room.maxBytes -= s.sharedRoom.maxBytes
	}
	s.owners.init()
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
	return Stats{
		Keys:  s.room.keys.Load(),
		Bytes: s.room.bytes.Load() + s.sharedRoom.bytes.Load(), MaxBytes: s.room.maxBytes + s.sharedRoom.maxBytes,
		Reclaimed: s.reclaimed.Load(), Overflowed: s.overflowed.Load(), Refused: s.refused.Load(),
	}
}

// Bind implements [store.Store]. Every limit that makes sense is kept exactly.
func (s *Store) Bind(spec store.Spec) (store.Binding, error) {
	if s == nil || s.tables.Load() == nil {
		return nil, errors.New("memory: the Store is nil or the zero Store; accepted: a Store that New returned")
	}
	program, err := s.programs.compile(spec.Limit)
	if err != nil {
		return nil, err
	}
	text, label := spec.Name+"\x00"+program.Limit().String(), spec.Name
	word, oneWord := program.Word()
	switch {
	case spec.Accounts():
		text, oneWord = spec.Name+"\x00*", false // no limit reads so
	case spec.TimeDebt:
		text = spec.Name + "\x00"
		if _, err := algorithm.CompileShared(spec.Limit, time.Nanosecond); err != nil {
			return nil, err
		}
		word, oneWord = program.SharedWord(s.clock.start)
	}
	if label == "" {
		label = program.Limit().String()
	}
	id := s.limits.hash(text)
	o := s.owners.bind(id, label)
	pad := id.of(o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if oneWord {
		b := &wordBinding{
			store: s, table: s.table(word), program: program, word: word, pad: pad, owner: o, capacity: program.Limit().Capacity(),
		}
		releaseWith(b, o)
		return b, nil
	}
	if s.states == nil {
		s.states = newStateTable(s)
		s.addTable(s.states)
	}
	b := &stateBinding{
		store: s, table: s.states, program: program, pad: pad, owner: o, capacity: program.Limit().Capacity(),
		leases: program.Limit().Algorithm == algorithm.Concurrent, named: spec.Accounts(),
	}
	if b.leases || program.Limit().Algorithm == algorithm.SlidingLog {
		b.added = 2
	}
	releaseWith(b, o)
	return b, nil
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

// A Holder is a name, or a limit without a name, with its keys and bytes.
type Holder struct {
	Name        string // or the limit's text; at most the first 64 bytes
	Keys, Bytes int64
}

// Largest returns the name, or the limit without a name, with the most memory.
func (s *Store) Largest() Holder {
	o := s.owners.largest()
	return Holder{Name: o.label, Keys: o.keys.Load(), Bytes: o.bytes.Load()}
}
