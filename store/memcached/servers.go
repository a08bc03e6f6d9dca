package memcached

import (
	"hash/fnv"
	"net"
	"sync/atomic"

	"github.com/weirlimit/weir/store"
)

// addr is a [net.Addr] whose host is looked up when it is dialled, so that it may move.
type addr struct{ network, text string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.text }

// A server is one of several over which the names are spread.
type server struct {
	addr
	hash uint64
	busy chan struct{} // has room for as many as may speak to it at a time
	size atomic.Int64  // bytes that an item may have; 0 if that is not known

	circuit *store.Circuit
}

// servers implements [memcache.ServerSelector]. A name is on the server that has the highest score for it (rendezvous hashing), so that
// when one of n servers is added or taken away, only one name of n moves. The order of the servers in the URL does
// not matter, their spelling does.
type servers []*server

func newServers(addrs []addr, connections int) servers {
	var all servers
	for _, a := range addrs {
		all = append(all, &server{addr: a, hash: hash(a.text), busy: make(chan struct{}, connections)})
	}
	return all
}

func (all servers) of(name string) *server {
	best := all[0]
	if len(all) == 1 {
		return best
	}
	h, highest := hash(name), uint64(0)
	for _, s := range all {
		if score := mix(h ^ s.hash); score >= highest {
			best, highest = s, score
		}
	}
	return best
}

// PickServer implements [memcache.ServerSelector].
func (all servers) PickServer(name string) (net.Addr, error) { return all.of(name).addr, nil }

// Each implements [memcache.ServerSelector].
func (all servers) Each(f func(net.Addr) error) error {
	for _, s := range all {
		if err := f(s.addr); err != nil {
			return err
		}
	}
	return nil
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

// mix lets each bit of h change about half of the bits of the result: FNV's high bits depend little on a text's end.
func mix(h uint64) uint64 {
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return h ^ h>>32
}
