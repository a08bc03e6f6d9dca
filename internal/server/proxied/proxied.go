// Package proxied listens behind proxies that report their clients by the PROXY protocol, versions 1
// and 2.
//
// A connection from a trusted proxy begins with a header that has the client's address. A connection
// from elsewhere has no header: bytes there that look like a header are input of the client. Headers
// are read outside of Accept (package preface): a proxy that is slow to send a header delays no other
// connection.
package proxied

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/preface"
)

const (
	// DefaultTimeout is how long a header may take unless Options says otherwise. Proxies send it at once.
	DefaultTimeout = 5 * time.Second
	// maxPending is the number of connections from proxies that may be waiting at once, for their
	// header or for Accept.
	maxPending = 1024
)

// Options for Listen.
type Options struct {
	// From are the addresses of proxies. Their connections must begin with a header; a header of any
	// other connection has no meaning.
	From []netip.Prefix
	// Unix reports whether connections of a Unix socket are a proxy's, too.
	Unix bool
	// Timeout bounds how long a header may take to come. 0: DefaultTimeout.
	Timeout time.Duration
	// Log receives a warning for connections without a valid header, at most once in ten seconds.
	// Nil: none.
	Log *slog.Logger
	// Panics recovers from panics. Nil: a Panics with Log.
	Panics *guard.Panics
}

// A Listener returns connections whose RemoteAddr is the client's. Make one with Listen.
type Listener struct {
	*preface.Listener
	options Options
	refused atomic.Int64
	sample  guard.Sampler
}

// Listen returns a listener over l, which it owns. The first Accept starts to accept from l.
func Listen(l net.Listener, o Options) *Listener {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Panics == nil {
		o.Panics = guard.NewPanics(o.Log)
	}
	listener := &Listener{options: o}
	listener.Listener = preface.Listen(l, preface.Options{
		Read: read, Needs: listener.trusts, Timeout: o.Timeout, Bounds: guard.New(guard.Options{Max: maxPending}),
		Failed: listener.refuse, Panics: o.Panics,
	})
	return listener
}

// Refused returns the number of connections from proxies that were closed because they had no valid
// header, or because too many headers were awaited.
func (l *Listener) Refused() int64 { return l.refused.Load() }

func (l *Listener) refuse(c net.Conn, err error) {
	if errors.Is(err, errNothing) {
		return
	}
	n := l.refused.Add(1)
	if l.sample.Pass(time.Now()) {
		l.options.Log.Warn("connections from a proxy without a header of the PROXY protocol that will do are closed",
			"proxy", c.RemoteAddr(), "address", l.Addr(), "error", err, "refused", n)
	}
}

// trusts reports whether a connection is a proxy's.
func (l *Listener) trusts(c net.Conn) bool {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return l.options.Unix
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range l.options.From {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
