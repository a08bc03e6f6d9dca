package clients

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"

	"github.com/weirlimit/weir/policy"
)

// An index finds the place of a name among many, in constant time and without pointers, so that a million names cost little memory and
// nothing when garbage is collected. Names can only be added, and are found once it is sealed.
type index struct {
	seed  maphash.Seed
	slots []uint64 // a hash's low half above, place + 1 below; 0 is free. They are probed one after the other.
	names []byte   // all of them, one after the other
	ends  []uint32 // where each ends
}

// maxBytes bounds the names of an index together.
const maxBytes = math.MaxUint32

// add appends a name. Its place is how many there were before.
func (x *index) add(name string) error {
	if len(x.names)+len(name) > maxBytes {
		return fmt.Errorf("the names of all clients are of more than %d bytes together", maxBytes)
	}
	x.names = append(x.names, name...)
	x.ends = append(x.ends, uint32(len(x.names)))
	return nil
}

// seal makes what was added findable. A name that was added twice is an error.
func (x *index) seal() error {
	x.seed = maphash.MakeSeed()
	x.names, x.ends = trim(x.names), trim(x.ends)
	x.slots = make([]uint64, len(x.ends)+len(x.ends)/2+1)
	for place := range x.ends {
		name := x.name(place)
		h := maphash.Bytes(x.seed, name)
		i := x.first(h)
		for ; x.slots[i] != 0; i = x.next(i) {
			if x.is(x.slots[i], h, string(name)) {
				return fmt.Errorf("client %s is there twice", policy.MaskClient(string(name)))
			}
		}
		x.slots[i] = h<<32 | uint64(place+1)
	}
	return nil
}

// trim gives back the room that growing has left.
func trim[T any](s []T) []T {
	if cap(s) == len(s) {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// find returns the place of a name; ok is false if it was not added.
func (x *index) find(name string) (place int, ok bool) {
	if len(x.ends) == 0 {
		return 0, false
	}
	h := maphash.String(x.seed, name)
	for i := x.first(h); x.slots[i] != 0; i = x.next(i) {
		if x.is(x.slots[i], h, name) {
			return int(uint32(x.slots[i])) - 1, true
		}
	}
	return 0, false
}

// first returns the slot where a hash is looked for first: its high bits as a fraction of all slots.
func (x *index) first(h uint64) int {
	i, _ := bits.Mul64(h, uint64(len(x.slots)))
	return int(i)
}

func (x *index) next(i int) int {
	if i++; i == len(x.slots) {
		return 0
	}
	return i
}

func (x *index) is(slot, h uint64, name string) bool {
	return slot>>32 == h&math.MaxUint32 && string(x.name(int(uint32(slot))-1)) == name
}

// name returns the name at a place.
func (x *index) name(place int) []byte {
	from := uint32(0)
	if place > 0 {
		from = x.ends[place-1]
	}
	return x.names[from:x.ends[place]]
}

func (x *index) len() int { return len(x.ends) }
