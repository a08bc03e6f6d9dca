package admission

import (
	"hash/maphash"
	"math/rand/v2"
	"sync/atomic"

	"github.com/weirlimit/weir"
)

// mostNames is how many limits' texts are kept.
const mostNames = 1024

// named is a limit, and what of it is the same for each request.
type named struct {
	limit    weir.Limit
	capacity int64
	text     string
}

// names keeps the texts of limits, so that they are not written for each request.
type names struct {
	last  atomic.Pointer[named] // of the Gate's own limiter
	texts [mostNames]atomic.Pointer[named]
}

// name is what clients are told that the limiter is called.
func (a *Admission) name() string {
	if a.gate.opts.Name != "" && a.limit == a.gate.limiter {
		return a.gate.opts.Name
	}
	return a.under.text
}

// limitOf returns the limit that is in force of a limiter.
func (g *Gate) limitOf(l *weir.Limiter) *named {
	limit := l.Limit()
	last := g.names.last.Load()
	if last != nil && last.limit == limit {
		return last
	}
	found := g.names.of(limit)
	if l == g.limiter {
		g.names.last.Store(found)
	}
	return found
}

var seed = maphash.MakeSeed()

// of returns what is kept of the limit, which is in one of two places.
func (n *names) of(limit weir.Limit) *named {
	hash := maphash.Comparable(seed, limit)
	first, second := &n.texts[hash%mostNames], &n.texts[hash>>32%mostNames]
	one, other := first.Load(), second.Load()
	switch {
	case one != nil && one.limit == limit:
		return one
	case other != nil && other.limit == limit:
		return other
	}
	made := &named{limit, limit.Capacity(), limit.String()}
	if one != nil && (other == nil || rand.Uint32()%2 == 0) { //nolint:gosec // no secret: by chance, so that those that come again find a place each
		first = second
	}
	first.Store(made)
	return made
}
