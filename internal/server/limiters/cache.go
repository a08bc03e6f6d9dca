package limiters

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// The cache is an array of small sets: a key may be in any of the ways of its set, and a full set drops one of
// its entries for a new one. Readers take no lock. Insertion costs the same however full the cache is, and as
// the hash is seeded, nobody can choose keys that meet.
const (
	sets = 2048
	ways = 4
)

type cache[V any] struct {
	seed  maphash.Seed
	mu    sync.Mutex // held to insert
	turn  uint       // counts the entries dropped
	slots [sets][ways]atomic.Pointer[entry[V]]
}

type entry[V any] struct {
	key   string
	value V
}

func newCache[V any]() *cache[V] { return &cache[V]{seed: maphash.MakeSeed()} }

func (c *cache[V]) set(key []byte) *[ways]atomic.Pointer[entry[V]] {
	return &c.slots[maphash.Bytes(c.seed, key)%sets]
}

func (c *cache[V]) get(key []byte) (value V, ok bool) {
	set := c.set(key)
	for i := range set {
		if e := set[i].Load(); e != nil && e.key == string(key) {
			return e.value, true
		}
	}
	return value, false
}

// put remembers the value, unless the key already has one, and returns the one that the key has.
func (c *cache[V]) put(key string, value V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.get([]byte(key)); ok {
		return old
	}
	set := c.set([]byte(key))
	at := 0
	for at < ways && set[at].Load() != nil {
		at++
	}
	if at == ways {
		at = int(c.turn % ways)
		c.turn++
	}
	set[at].Store(&entry[V]{key, value})
	return value
}
