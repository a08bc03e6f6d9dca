package load

import (
	"runtime"
	"strings"

	"github.com/weirlimit/weir/bench/peer"
)

// Heap returns the bytes of a key at a million keys: without its text, which the harness has for all
// peers alike; and with it, for keys that nobody else has, so that a peer that keeps them pays for each.
func Heap(p peer.Peer) (perKey, withText float64, err error) {
	s := Each(Keys)
	if perKey, err = grown(p, func(i int) string { return s.Key(i) }); err != nil {
		return 0, 0, err
	}
	withText, err = grown(p, func(i int) string { return strings.Clone(s.Key(i)) })
	runtime.KeepAlive(s)
	return perKey, withText, err
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
