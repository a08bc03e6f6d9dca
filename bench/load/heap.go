package load

import (
	"runtime"
	"strings"

	"github.com/weirlimit/weir/bench/peer"
)

// A Heap is what a key costs in memory, in bytes, at a million keys.
type Heap struct {
	// PerKey leaves out the text of the key itself, which the harness holds for all peers alike.
	PerKey float64
	// WithText is for keys that nobody else holds: a peer that keeps them pays for each.
	WithText float64
}

// Measure fills two limiters of the peer with a million keys each.
func Measure(p peer.Peer) (Heap, error) {
	s := Each(Keys)
	shared, err := grown(p, func(i int) string { return s.Key(i) })
	if err != nil {
		return Heap{}, err
	}
	own, err := grown(p, func(i int) string { return strings.Clone(s.Key(i)) })
	runtime.KeepAlive(s)
	return Heap{PerKey: shared, WithText: own}, err
}

func grown(p peer.Peer, key func(i int) string) (float64, error) {
	before := live()
	l, err := p.New(many)
	if err != nil {
		return 0, err
	}
	for i := range Keys {
		l.Allow(key(i))
	}
	after := live()
	runtime.KeepAlive(l)
	return (after - before) / Keys, nil
}

// live returns the bytes on the heap that are in use. Twice, because what a pool or a finalizer holds goes with the
// second collection.
func live() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
