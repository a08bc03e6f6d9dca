package httplimit

import (
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit/header"
)

// limitHeaders caches the formatted header values of one limit, and recent values of RateLimit: most
// recur. Handlers must not change values of a header in place, so requests share them.
type limitHeaders struct {
	name   string
	limit  weir.Limit
	line   *header.Line
	policy []string                // without spare capacity, so that an append copies it
	recent []atomic.Pointer[value] // by what remains
}

// Bounds of the cache.
const (
	mostLimits = 1024
	mostTables = 32   // limits with recent values
	mostRecent = 1024 // the largest capacity with recent values: beyond it values hardly recur
)

// A value is a value of RateLimit, and the slice that a header has it in, in one allocation.
type value struct {
	values [1]string
	text   [64]byte
}

// values returns the value of RateLimit, as a header has it.
func (t *limitHeaders) values(d *weir.Decision) []string {
	var buf [len(value{}.text)]byte
	text := t.line.Append(buf[:0], d)
	keep := d.Remaining >= 0 && d.Remaining < int64(len(t.recent))
	if keep {
		if v := t.recent[d.Remaining].Load(); v != nil && v.values[0] == string(text) {
			return v.values[:]
		}
	}
	v := &value{}
	if len(text) > len(v.text) {
		v.values[0] = string(text)
	} else {
		n := copy(v.text[:], text)
		v.values[0] = unsafe.String(&v.text[0], n) //nolint:gosec // nobody writes to v.text any more
	}
	if keep {
		t.recent[d.Remaining].Store(v)
	}
	return v.values[:]
}

// A limitHeadersCache caches the headers of limits by their names: of a limiter one until its limit
// changes, of policies one for each of their limits and plans.
type limitHeadersCache struct {
	last   atomic.Pointer[limitHeaders]
	others [mostLimits]atomic.Pointer[limitHeaders]

	mu     sync.Mutex // held to replace an entry
	tables int
}

var seed = maphash.MakeSeed()

// of returns the headers of the limit, which are in one of two places.
func (c *limitHeadersCache) of(name string, limit weir.Limit) *limitHeaders {
	if last := c.last.Load(); last.is(name, limit) {
		return last
	}
	hash := maphash.String(seed, name)
	first, second := &c.others[hash%mostLimits], &c.others[hash>>32%mostLimits]
	if t := first.Load(); t.is(name, limit) {
		return t
	}
	if t := second.Load(); t.is(name, limit) {
		return t
	}
	line := header.Of(name, limit)
	t := &limitHeaders{name: name, limit: limit, line: line, policy: []string{line.Policy()}[:1:1]}
	c.keep(t, first, second)
	return t
}

// keep stores the headers of a limit in place of those of the same name, or in a free place, or in place
// of one of the two others, at random, so that limits that recur find a place each.
func (c *limitHeadersCache) keep(t *limitHeaders, first, second *atomic.Pointer[limitHeaders]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	place, one, other := first, first.Load(), second.Load()
	switch {
	case one == nil || one.name == t.name:
	case other == nil || other.name == t.name || rand.Uint32()%2 == 0: //nolint:gosec // no secret
		place, one = second, other
	}
	if one != nil && one.recent != nil {
		c.tables--
	}
	if capacity := t.limit.Capacity(); c.tables < mostTables && capacity <= mostRecent && t.line.Size() <= len(value{}.text) {
		c.tables++
		t.recent = make([]atomic.Pointer[value], capacity+1)
	}
	place.Store(t)
	if last := c.last.Load(); last == nil || last.name == t.name {
		c.last.Store(t)
	}
}

func (t *limitHeaders) is(name string, limit weir.Limit) bool {
	return t != nil && t.name == name && t.limit == limit
}
