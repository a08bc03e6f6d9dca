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

// told is what stays the same of what is told of a limit, and values of RateLimit that were told lately: most are told again. Who serves a request must not change values of a
// header in place, and so they are shared.
type told struct {
	name   string
	limit  weir.Limit
	line   *header.Line
	policy []string                // with no room for a second value: who adds one makes a slice of his own
	recent []atomic.Pointer[value] // by what remains
}

// Bounds on what is kept.
const (
	mostTold   = 1024 // limits
	mostTables = 32   // of them with values
	mostRecent = 1024 // the capacity of the largest of those: with more, what remains is hardly ever what it was
)

// A value is one of RateLimit, and the slice that a header has it in, in one piece.
type value struct {
	values [1]string
	text   [64]byte
}

// values returns the value of RateLimit, as a header has it.
func (t *told) values(d *weir.Decision) []string {
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

// tellings are what was told of the last limits, by their names. Of a limiter there is one until its limit changes; policies have as many as they have limits and plans.
type tellings struct {
	last   atomic.Pointer[told]
	others [mostTold]atomic.Pointer[told]

	mu     sync.Mutex // of who puts something in place of another
	tables int
}

var seed = maphash.MakeSeed()

// of returns what is kept of the limit, which is in one of two places.
func (c *tellings) of(name string, limit weir.Limit) *told {
	if last := c.last.Load(); last.is(name, limit) {
		return last
	}
	hash := maphash.String(seed, name)
	first, second := &c.others[hash%mostTold], &c.others[hash>>32%mostTold]
	if t := first.Load(); t.is(name, limit) {
		return t
	}
	if t := second.Load(); t.is(name, limit) {
		return t
	}
	line := header.Of(name, limit)
	t := &told{name: name, limit: limit, line: line, policy: []string{line.Policy()}[:1:1]}
	c.keep(t, first, second)
	return t
}

// keep puts what is told of a limit where the same name's was, or where nothing was, or in place of one of the two others: which is left to chance, so that those that are told of again find a place each.
func (c *tellings) keep(t *told, first, second *atomic.Pointer[told]) {
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

func (t *told) is(name string, limit weir.Limit) bool {
	return t != nil && t.name == name && t.limit == limit
}
