package memory

import (
	"math"
	"sync/atomic"
)

const (
	// DefaultMaxBytes is the default of Options.MaxBytes: 1 GiB.
	DefaultMaxBytes = 1 << 30
	// MinMaxBytes is the least MaxBytes. Options with less have this: 1 MiB.
	MinMaxBytes = 1 << 20
	// unbounded is the bound of a room without a bound. share times unbounded is still an int64.
	unbounded = math.MaxInt64 / (2 * share)
	// share bounds the part of a store of each owner: an owner may grow while it uses less than
	// share times the free memory. A single owner gets 4/5 of the store, two get 4/9 each. So a
	// flood of keys under one limit leaves memory for the rest.
	share = 4
)

// A room counts the keys and bytes of a store, and refuses growth beyond its bounds.
type room struct {
	maxKeys, maxBytes int64
	keys, bytes       atomic.Int64
}

func (r *room) init(o Options) {
	r.maxKeys, r.maxBytes = min(int64(o.MaxKeys), unbounded), min(o.MaxBytes, unbounded)
	if r.maxKeys <= 0 {
		r.maxKeys = unbounded
	}
	if r.maxBytes <= 0 {
		r.maxBytes = DefaultMaxBytes
	}
	r.maxBytes = max(r.maxBytes, MinMaxBytes)
}

// addKey counts a key of an owner, unless the key is beyond the room or the owner's share.
func (r *room) addKey(o *owner) bool {
	n := r.keys.Add(1)
	if n > r.maxKeys || o.keys.Load() >= share*(r.maxKeys-n+1) || o.bytes.Load() >= share*(r.maxBytes-r.bytes.Load()) {
		r.keys.Add(-1)
		return false
	}
	o.keys.Add(1)
	return true
}

// dropKey is the reverse of addKey.
func (r *room) dropKey(o *owner) {
	r.keys.Add(-1)
	o.keys.Add(-1)
}

// grow counts bytes of an owner, unless they are beyond the room or the owner's share. A negative
// number, and 0, are always counted.
func (r *room) grow(o *owner, n int64) bool {
	after := r.bytes.Add(n)
	if n > 0 && (after > r.maxBytes || o.bytes.Load()+n > share*(r.maxBytes-after)) {
		r.bytes.Add(-n)
		return false
	}
	o.bytes.Add(n)
	return true
}

// force counts bytes of an owner without a bound: settlements are never refused.
func (r *room) force(o *owner, n int64) {
	r.bytes.Add(n)
	o.bytes.Add(n)
}

// growCommon counts bytes of nobody's, unless they are beyond the room.
func (r *room) growCommon(n int64) bool {
	if r.bytes.Add(n) > r.maxBytes {
		r.bytes.Add(-n)
		return false
	}
	return true
}
