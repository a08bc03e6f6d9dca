// Package guard bounds the connections of the daemon's protocols: how many there are, in all and of
// each address. It counts refused and cut connections, by reason, and logs a sample. It recovers
// from panics.
package guard

import (
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Options for New.
type Options struct {
	// Protocol names the protocol in the log.
	Protocol string
	// Max is how many connections may be open at once. Required.
	Max int
	// MaxPerAddress is how many connections one address may have. 0: Max.
	MaxPerAddress int
	// Log receives a warning for refused or cut connections, at most once in ten seconds
	// for each reason. Nil: none.
	Log *slog.Logger
	// Panics recovers from panics of the guard's goroutines. Nil: a new Panics.
	Panics *Panics
}

// A Guard counts the connections of one protocol. It may be used by many goroutines at once.
type Guard struct {
	options Options
	counts  [reasons]counter
	refusal chan struct{} // an element for each refusal under way

	mu      sync.Mutex
	open    int
	sources map[netip.Prefix]*Source
}

// New returns a guard without connections.
func New(o Options) *Guard {
	if o.MaxPerAddress <= 0 {
		o.MaxPerAddress = o.Max
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Panics == nil {
		o.Panics = NewPanics(o.Log)
	}
	most := max(leastRefusals, min(maxRefusals, o.Max/refusalShare))
	return &Guard{options: o, refusal: make(chan struct{}, most), sources: map[netip.Prefix]*Source{}}
}

// A Source is an address, or a /64 of IPv6, with connections. The nil Source has no bounds: it is
// for connections without an IP address, such as from a Unix socket.
type Source struct {
	prefix netip.Prefix
	open   int // guarded by the guard's mutex
	held   atomic.Int64
}

// Admit counts a connection in. It returns ok false, and why, if there may be no more connections.
// Leave must follow when an admitted connection ends.
func (g *Guard) Admit(a net.Addr) (from *Source, why Reason, ok bool) {
	prefix, bounded := Prefix(a)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.options.Max {
		return nil, Total, false
	}
	if bounded {
		if from = g.sources[prefix]; from == nil {
			from = &Source{prefix: prefix}
		}
		if from.open >= g.options.MaxPerAddress {
			return nil, Address, false
		}
		from.open++
		g.sources[prefix] = from
	}
	g.open++
	return from, 0, true
}

// Leave counts an admitted connection out.
func (g *Guard) Leave(from *Source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if from == nil {
		return
	}
	if from.open--; from.open == 0 {
		delete(g.sources, from.prefix)
	}
}

// Open returns the number of open connections.
func (g *Guard) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// Hold adds to the bytes of the source. It returns false, and adds nothing, beyond most. A negative
// number gives bytes back.
func (s *Source) Hold(more, most int64) bool {
	if s == nil {
		return true
	}
	if s.held.Add(more) > most && more > 0 {
		s.held.Add(-more)
		return false
	}
	return true
}

// Prefix returns the part of an IP address by which connections are counted: all of an IPv4
// address, and the first 64 bits of an IPv6 address, because a client usually has all addresses of
// such a network.
func Prefix(a net.Addr) (p netip.Prefix, ok bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, false
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := min(addr.BitLen(), 64)
	p, err := addr.Prefix(bits)
	return p, err == nil && addr.IsValid()
}
