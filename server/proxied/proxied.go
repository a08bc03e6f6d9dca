// Package proxied listens behind proxies that tell of their clients by the PROXY protocol, versions 1 and 2.
//
// A connection from a trusted proxy begins with a header that says whose it is; one from anywhere else does not, and what looks like a header there is what its client sends.
// Headers are read beside Accept: a proxy that is slow to send one delays nobody else's connection, and whoever accepts one knows at once, and without waiting, whose it is.
package proxied

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/server/guard"
)

const (
	// DefaultTimeout is how long a header may take unless Options says otherwise. Proxies send it at once.
	DefaultTimeout = 5 * time.Second
	// maxPending is the number of connections from proxies that are here at once and not accepted yet. One more is closed.
	maxPending = 1024
)

// Options for Listen.
type Options struct {
	// From is where proxies connect from. Their connections must begin with a header, and nobody else's may.
	From []netip.Prefix
	// Timeout bounds how long a header may take to come. 0: DefaultTimeout.
	Timeout time.Duration
	// Log is told of connections without a header that will do, at most once every ten seconds. Nil: nobody is.
	Log *slog.Logger
	// Panics recovers from panics. Nil: a Panics with Log.
	Panics *guard.Panics
}

// A Listener hands out connections whose RemoteAddr is the client's. Make one with Listen.
type Listener struct {
	inner   net.Listener
	options Options
	refused atomic.Int64
	sample  guard.Sampler

	start    sync.Once
	accepted chan accepted
	closed   chan struct{}

	mu      sync.Mutex
	pending map[net.Conn]bool // from proxies, and whether they are ours to close: their headers are awaited. Nil after Close
}

type accepted struct {
	conn net.Conn
	err  error
}

// Listen returns a listener over l, which it owns. It accepts from l once somebody accepts from it.
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
	return &Listener{inner: l, options: o, accepted: make(chan accepted), closed: make(chan struct{}), pending: map[net.Conn]bool{}}
}

// Accept returns the next connection that is somebody's. Errors are those of the listener below, and net.ErrClosed after Close.
func (l *Listener) Accept() (net.Conn, error) {
	l.start.Do(func() { go l.acceptAll() })
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Addr returns the address of the listener below.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Refused counts the connections from proxies that were closed because they brought no header that will do, or too many were awaited.
func (l *Listener) Refused() int64 { return l.refused.Load() }

// Close stops listening, and closes the connections whose headers have not come yet. Those that were accepted are their owners'.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return &net.OpError{Op: "close", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
	close(l.closed)
	for c, awaited := range l.pending {
		if awaited {
			_ = c.Close()
		}
	}
	l.pending = nil
	return l.inner.Close()
}

// acceptAll accepts until the listener is closed. It gives each connection, and each error, to whoever accepts next.
func (l *Listener) acceptAll() {
	for l.acceptNext() {
	}
}

func (l *Listener) acceptNext() (more bool) {
	more = true // also after a panic
	defer l.options.Panics.Recover("proxied: accept")
	c, err := l.inner.Accept()
	switch {
	case err != nil:
		more = l.hand(accepted{err: err})
	case !l.trusts(c.RemoteAddr()):
		l.give(c)
	case !l.await(c):
		_ = c.Close()
	default:
		go l.options.Panics.Safe("proxied: header", func() { l.receive(c) })()
	}
	return more
}

// receive reads a connection's header, and gives it to whoever accepts.
func (l *Listener) receive(c net.Conn) {
	handed := false
	defer l.forget(c)
	defer func() {
		if !handed {
			_ = c.Close()
		}
	}()
	conn, err := read(c, time.Now().Add(l.options.Timeout))
	open := l.arrived(c)
	if err == nil {
		handed = true
		l.give(conn)
		return
	}
	if open && !errors.Is(err, errNothing) {
		l.refuse(c, err)
	}
}

// give hands a connection to whoever accepts next, or closes it if the listener is closed before somebody does.
func (l *Listener) give(c net.Conn) {
	if !l.hand(accepted{conn: c}) {
		_ = c.Close()
	}
}

func (l *Listener) hand(a accepted) bool {
	select {
	case l.accepted <- a:
		return true
	case <-l.closed:
		return false
	}
}

// await notes that a connection's header is to come. It returns false if there is no room for it, or the listener is closed.
func (l *Listener) await(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return false
	}
	if len(l.pending) >= maxPending {
		l.refuse(c, errTooMany)
		return false
	}
	l.pending[c] = true
	return true
}

// arrived notes that nothing of a connection's header is awaited any more. It returns false if the listener was closed meanwhile.
func (l *Listener) arrived(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return false
	}
	l.pending[c] = false
	return true
}

// forget notes that a connection was accepted, or closed.
func (l *Listener) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, c)
}

func (l *Listener) refuse(c net.Conn, err error) {
	n := l.refused.Add(1)
	if l.sample.Pass(time.Now()) {
		l.options.Log.Warn("connections from a proxy without a header of the PROXY protocol that will do are closed",
			"proxy", c.RemoteAddr(), "address", l.Addr(), "error", err, "refused", n)
	}
}

// trusts reports whether an address is a proxy's.
func (l *Listener) trusts(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return false
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	for _, p := range l.options.From {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
