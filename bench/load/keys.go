// Package load makes the keys and the order in which they are asked for, and times a limiter on them.
package load

import (
	"encoding/hex"
	"math/rand/v2"
)

// KeyBytes is the length of every key.
const KeyBytes = 20

// seed makes every process draw the same sequences.
const seed = 20

// A Stream is a sequence of requests: their keys, one after another in one string. A request is then
// what it is in a server, a key just read: in cache, and not the memory that a limiter may have kept.
type Stream string

// Len returns the number of requests.
func (s Stream) Len() int { return len(s) / KeyBytes }

// Key returns the key of request i.
func (s Stream) Key(i int) string { return string(s[i*KeyBytes : (i+1)*KeyBytes]) }

// Each returns n different keys.
func Each(n int) Stream {
	return stream(n, func(i int) uint64 { return uint64(i) })
}

// Uniform returns n requests, each for any of so many keys with equal chance.
func Uniform(n, keys int) Stream {
	r := rand.New(rand.NewPCG(seed, 1))
	return stream(n, func(int) uint64 { return r.Uint64N(uint64(keys)) })
}

// Zipf returns n requests, where the k-th of so many keys has a chance in proportion to k to the power of -1.1.
func Zipf(n, keys int) Stream {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 2)), 1.1, 1, uint64(keys-1))
	return stream(n, func(int) uint64 { return z.Uint64() })
}

// Same returns n requests for one key.
func Same(n int) Stream {
	return stream(n, func(int) uint64 { return 0 })
}

func stream(n int, key func(i int) uint64) Stream {
	text := make([]byte, 0, n*KeyBytes)
	for i := range n {
		text = appendKey(text, key(i))
	}
	return Stream(text)
}

// appendKey spreads the numbers, one to one, so that neighbours have nothing in common: the mixing function of
// Sebastiano Vigna's splitmix64.
func appendKey(text []byte, i uint64) []byte {
	i += 0x9e3779b97f4a7c15
	i = (i ^ i>>30) * 0xbf58476d1ce4e5b9
	i = (i ^ i>>27) * 0x94d049bb133111eb
	i ^= i >> 31
	text = append(text, "usr:"...)
	var b [8]byte
	for j := range b {
		b[j] = byte(i >> (8 * j))
	}
	return hex.AppendEncode(text, b[:])
}
