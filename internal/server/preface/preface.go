// Package preface listens for connections that begin with a preface before their protocol: a header
// of the PROXY protocol, or a TLS handshake.
//
// Prefaces are read outside of Accept, with bounds on their time and number. A client that is slow
// to send its preface delays no other connection.
package preface

import (
	"container/list"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

// Patience is the age at which a connection without its preface gives way, if there is no room for a
// new connection. A preface of a client that is not slow is there by then.
const Patience = time.Second

// ErrTooMany is the error for a connection for whose preface there is no room.
var ErrTooMany = errors.New("too many connections are beginning")

// errSlow is the error for a connection that gave way to a new connection.
var errSlow = errors.New("too slow, while many connections are beginning")

// Options for Listen.
type Options struct {
	// Read reads the preface of a connection, and returns the connection after its preface. The
	// deadline of the connection is set. After an error the connection is closed. Required.
	Read func(net.Conn) (net.Conn, error)
	// Needs reports whether a connection begins with a preface. Nil: every connection does.
	Needs func(net.Conn) bool
	// Timeout bounds the time of a preface. Required.
	Timeout time.Duration
	// Bounds bounds the connections whose preface is awaited, in all and of one address. Required.
	Bounds *guard.Guard
	// Failed receives each connection that is closed for want of a preface, with the reason. It is
	// not called for connections that Close closes. Required.
	Failed func(net.Conn, error)
	// Panics recovers from panics. Required.
	Panics *guard.Panics
}

// A Listener returns connections after their preface. Make one with Listen.
type Listener struct {
	inner   net.Listener
	options Options

	start    sync.Once
	accepted chan accepted
	closed   chan struct{}

	mu      sync.Mutex
	ended   bool       // by Close
	awaited *list.List // of *entry, whose prefaces are awaited, in the order of their arrival
}

type accepted struct {
	conn net.Conn
	err  error
}

// An entry is a connection between its arrival and the next Accept.
type entry struct {
	conn    net.Conn
	source  *guard.Source
	prefix  netip.Prefix
	since   time.Time
	element *list.Element // of awaited; nil: its preface is not awaited any more
	gone    bool          // it gave way to a new connection
}

// Listen returns a listener over l, which it owns. The first Accept starts to accept from l.
func Listen(l net.Listener, o Options) *Listener {
	if o.Needs == nil {
		o.Needs = func(net.Conn) bool { return true }
	}
	return &Listener{inner: l, options: o, accepted: make(chan accepted), closed: make(chan struct{}), awaited: list.New()}
}

// Accept returns the next connection, after its preface. Errors are errors of the listener below,
// and net.ErrClosed after Close.
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

// Close stops listening, and closes the connections that no Accept has returned.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return &net.OpError{Op: "close", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.ended = true
	close(l.closed)
	for e := l.awaited.Front(); e != nil; e = e.Next() {
		_ = e.Value.(*entry).conn.Close()
	}
	return l.inner.Close()
}

// acceptAll accepts until the listener is closed. It gives each connection, and each error, to the
// next Accept.
func (l *Listener) acceptAll() {
	for l.acceptNext() {
	}
}

func (l *Listener) acceptNext() (more bool) {
	more = true // also after a panic
	defer l.options.Panics.Recover("preface: accept")
	c, err := l.inner.Accept()
	switch {
	case err != nil:
		more = l.hand(accepted{err: err})
	case !l.options.Needs(c):
		l.give(c)
	default:
		e, err := l.await(c)
		if err != nil {
			_ = c.Close()
			l.report(c, err)
			break
		}
		go l.options.Panics.Safe("preface: read", func() { l.receive(e) })()
	}
	return more
}

// report passes on an error, except that of a connection that Close ends.
func (l *Listener) report(c net.Conn, err error) {
	if !errors.Is(err, net.ErrClosed) {
		l.options.Failed(c, err)
	}
}

// receive reads the preface of a connection, and gives the connection to the next Accept.
func (l *Listener) receive(e *entry) {
	handed := false
	defer l.forget(e)
	defer func() {
		if !handed {
			_ = e.conn.Close()
		}
	}()
	_ = e.conn.SetDeadline(time.Now().Add(l.options.Timeout)) // a failure shows in the first read
	c, err := l.options.Read(e.conn)
	if !l.arrived(e) {
		return
	}
	if err != nil {
		l.options.Failed(e.conn, err)
		return
	}
	_ = e.conn.SetDeadline(time.Time{})
	handed = true
	l.give(c)
}

// give hands a connection to the next Accept, or closes the connection if the listener is closed
// before.
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

// await notes that the preface of a connection is awaited.
func (l *Listener) await(c net.Conn) (*entry, error) {
	prefix, _ := guard.Prefix(c.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil, net.ErrClosed
	}
	for {
		source, why, ok := l.options.Bounds.Admit(c.RemoteAddr())
		if ok {
			e := &entry{conn: c, source: source, prefix: prefix, since: time.Now()}
			e.element = l.awaited.PushBack(e)
			return e, nil
		}
		if !l.displace(why, prefix) {
			return nil, ErrTooMany
		}
	}
}

// displace closes the oldest connection that has waited for Patience, to make room for another of
// the address, or, where why is guard.Total, for any. It returns false if there is none.
func (l *Listener) displace(why guard.Reason, prefix netip.Prefix) bool {
	for el := l.awaited.Front(); el != nil; el = el.Next() {
		e := el.Value.(*entry)
		if time.Since(e.since) < Patience {
			return false
		}
		if why == guard.Total || e.prefix == prefix {
			l.awaited.Remove(el)
			e.element, e.gone = nil, true
			l.options.Bounds.Leave(e.source)
			_ = e.conn.Close()
			l.options.Failed(e.conn, errSlow)
			return true
		}
	}
	return false
}

// arrived notes that the preface of a connection is not awaited any more. It returns false if the
// connection was closed meanwhile.
func (l *Listener) arrived(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.element != nil {
		l.awaited.Remove(e.element)
		e.element = nil
	}
	return !l.ended && !e.gone
}

// forget notes that a connection was accepted, or closed.
func (l *Listener) forget(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.element != nil { // after a panic
		l.awaited.Remove(e.element)
	}
	if !e.gone {
		l.options.Bounds.Leave(e.source)
	}
}
