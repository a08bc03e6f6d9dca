package httplimit

import (
	"hash/maphash"
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

// mostRecent is the capacity of the largest limits of which values are kept: with more, what remains is hardly ever what it was.
const mostRecent = 1024

func tellingOf(name string, limit weir.Limit) *told {
	line := header.Of(name, limit)
	t := &told{name: name, limit: limit, line: line, policy: []string{line.Policy()}[:1:1]}
	if capacity := limit.Capacity(); capacity <= mostRecent && line.Size() <= len(value{}.text) {
		t.recent = make([]atomic.Pointer[value], capacity+1)
	}
	return t
}

// A value is one of RateLimit, and the slice that a header has it in, in one piece.
type value struct {
	values [1]string
	text   [64]byte
}

// values returns the value of RateLimit, as a header has it.
func (t *told) values(d *weir.Decision) []string {
	var buf [len(value{}.text)]byte
	text := t.line.Append(buf[:0], d)
	if d.Remaining < 0 || d.Remaining >= int64(len(t.recent)) {
		return valueOf(text).values[:]
	}
	kept := &t.recent[d.Remaining]
	v := kept.Load()
	if v == nil || v.values[0] != string(text) {
		v = valueOf(text)
		kept.Store(v)
	}
	return v.values[:]
}

func valueOf(text []byte) *value {
	v := &value{}
	if len(text) > len(v.text) {
		v.values[0] = string(text)
		return v
	}
	n := copy(v.text[:], text)
	v.values[0] = unsafe.String(&v.text[0], n) //nolint:gosec // nobody writes to v.text any more
	return v
}

// tellings are what was told of the last limits, by their names. Of a limiter there is one until its limit changes; policies have as many as they have limits and plans.
type tellings struct {
	last   atomic.Pointer[told]
	others [32]atomic.Pointer[told]
}

var seed = maphash.MakeSeed()

func (c *tellings) of(name string, limit weir.Limit) *told {
	last := c.last.Load()
	if last.is(name, limit) {
		return last
	}
	kept := &c.others[maphash.String(seed, name)%uint64(len(c.others))]
	t := kept.Load()
	if !t.is(name, limit) {
		t = tellingOf(name, limit)
		kept.Store(t)
		c.last.CompareAndSwap(nil, t)
	}
	return t
}

func (t *told) is(name string, limit weir.Limit) bool {
	return t != nil && t.name == name && t.limit == limit
}
