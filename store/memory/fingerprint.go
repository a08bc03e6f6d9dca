package memory

import (
	"crypto/rand"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// A fingerprint identifies a key, or a key under a limit: 112 bits from secrets of the store, and
// the index of the owner. Among 10^9 keys the chance of a collision is about 2^59/2^112, or 10^-16.
type fingerprint struct{ hi, lo uint64 }

// of puts the index of an owner into the fingerprint of a limit.
func (f fingerprint) of(o *owner) fingerprint {
	return fingerprint{f.hi, f.lo&^ownerMask | o.index}
}

// with combines the fingerprints of a key and of its limit, which has the index of the owner. lo is
// never 0, which marks an empty slot.
func (f fingerprint) with(pad fingerprint) fingerprint {
	return fingerprint{f.hi ^ pad.hi, f.lo&^ownerMask ^ pad.lo}
}

// A hasher makes fingerprints. Half of one is hash/maphash. The other half multiplies the key's words, masked with
// secrets, in pairs: it need only be independent of the first, and of the secrets nothing is ever shown.
type hasher struct {
	seed  maphash.Seed
	masks [6]uint64
}

func newHasher() hasher {
	h := hasher{seed: maphash.MakeSeed()}
	var secret [8 * len(h.masks)]byte
	rand.Read(secret[:]) // never fails
	for i := range h.masks {
		h.masks[i] = binary.LittleEndian.Uint64(secret[8*i:])
	}
	return h
}

func (h *hasher) hash(key string) fingerprint {
	return fingerprint{hi: maphash.String(h.seed, key), lo: h.second(key)}
}

// second has no loop for keys of 8 to 32 bytes, which most are: its words overlap where the length is not a multiple of
// theirs, and the length is hashed too.
func (h *hasher) second(key string) uint64 {
	n := len(key)
	if n < 8 || n > 32 {
		return h.secondOfAny(key)
	}
	b := []byte(key) // not a copy: it is only read, and does not leave
	first, last := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	sum := multiply(first^h.masks[0], last^h.masks[1])
	if n > 16 {
		first, last = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[n-16:])
		sum ^= multiply(first^h.masks[2], last^h.masks[3])
	}
	return multiply(sum^h.masks[4], uint64(n)^h.masks[5])
}

// secondOfAny takes 16 bytes at a time, the last of them filled up with zeros.
func (h *hasher) secondOfAny(key string) (sum uint64) {
	for rest := key; len(rest) > 0; rest = rest[min(16, len(rest)):] {
		var b [16]byte
		copy(b[:], rest)
		first, last := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
		sum = multiply(sum^first^h.masks[0], last^h.masks[1]) ^ multiply(sum^first^h.masks[2], last^h.masks[3])
	}
	return multiply(sum^h.masks[4], uint64(len(key))^h.masks[5])
}

func multiply(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
