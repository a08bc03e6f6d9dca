package testengine

import (
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"time"
)

// A Fault describes how a [Proxy] treats connections. The zero Fault forwards everything at once.
type Fault struct {
	// Requests is the flow toward the engine, Replies the flow back.
	Requests, Replies Flow
	// Refuse resets new connections. Open connections stay.
	Refuse bool
}

// A Flow describes how a [Proxy] forwards a direction of its connections.
type Flow struct {
	// Delay is the time for which bytes are kept before they are forwarded. 0 is none.
	Delay time.Duration
	// Rate bounds each connection, in bytes per second. 0 is no bound.
	Rate int
	// Hold keeps all bytes until the fault ends, and forwards them then.
	Hold bool
	// Drop discards all bytes. A connection that lost bytes is reset when the fault ends.
	Drop bool
}

// A Proxy forwards TCP connections to an engine, and breaks them on command. All methods may be
// called by many goroutines at once.
type Proxy struct {
	listener net.Listener
	to       string
	pumps    sync.WaitGroup

	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed when the fault changes
	links   map[*link]struct{}
	closed  bool
}

// NewProxy starts a proxy to the server on a free port of 127.0.0.1. It ends with the test.
func NewProxy(t testing.TB, to *Server) *Proxy {
	t.Helper()
	p, err := listen(to.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

func listen(to string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, to: to, changed: make(chan struct{}), links: map[*link]struct{}{}}
	p.pumps.Go(p.accept)
	return p, nil
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Cut()
	p.pumps.Wait()
}

// Addr returns the host and port of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set replaces the current fault. It affects open and new connections.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if l.lost[requests] && !f.Requests.Drop || l.lost[replies] && !f.Replies.Drop {
			l.cut()
		}
	}
}

// Heal ends the current fault.
func (p *Proxy) Heal() { p.Set(Fault{}) }

// Cut resets all open connections, on both sides. New connections are not affected.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

// CloseRequests ends the flow toward the engine of all open connections. The engine reads the end
// of the stream and may still reply.
func (p *Proxy) CloseRequests() { p.closeWrite(requests) }

// CloseReplies ends the flow from the engine of all open connections. The store reads the end of
// the stream and may still send.
func (p *Proxy) CloseReplies() { p.closeWrite(replies) }

func (p *Proxy) closeWrite(d direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.to(d).CloseWrite()
	}
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		near := conn.(*net.TCPConn)
		p.pumps.Go(func() { p.serve(near) })
	}
}

// serve forwards a connection until both directions have ended. If the engine refuses the
// connection, the store's connection is reset.
func (p *Proxy) serve(near *net.TCPConn) {
	var far *net.TCPConn
	if !p.refuses() {
		conn, err := net.Dial("tcp", p.to)
		if err == nil {
			far = conn.(*net.TCPConn)
		}
	}
	if far == nil {
		reset(near)
		return
	}
	l := &link{proxy: p, near: near, far: far, done: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.closed {
		l.cut()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(requests) })
	both.Go(func() { l.pump(replies) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	near.Close()
	far.Close()
}

func (p *Proxy) refuses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed || p.fault.Refuse
}

// flow returns the current flow of a direction, and a channel that is closed at a change.
func (p *Proxy) flow(d direction) (Flow, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d == requests {
		return p.fault.Requests, p.changed
	}
	return p.fault.Replies, p.changed
}

type direction int

const (
	requests direction = iota
	replies
)

// A link is a connection of the store and its connection to the engine.
type link struct {
	proxy     *Proxy
	near, far *net.TCPConn // to the store, to the engine
	once      sync.Once
	done      chan struct{} // closed by cut
	lost      [2]bool       // by direction: bytes were dropped. The proxy's mutex protects it
}

func (l *link) from(d direction) *net.TCPConn {
	if d == requests {
		return l.near
	}
	return l.far
}

func (l *link) to(d direction) *net.TCPConn { return l.from(1 - d) }

// cut resets both connections.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.done)
		reset(l.near)
		reset(l.far)
	})
}

// reset closes a connection with RST.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// A chunk is the result of a read.
type chunk struct {
	bytes []byte
	at    time.Time
}

// pump forwards a direction until its end, or until the link is cut.
func (l *link) pump(d direction) {
	chunks := make(chan chunk, 64)
	ended := make(chan error, 1)
	go func() {
		ended <- l.read(d, chunks)
		close(chunks)
	}()
	forwarding := true
	for c := range chunks { // the reader ends only when all chunks were received
		forwarding = forwarding && l.forward(d, c)
	}
	if err := <-ended; err != io.EOF { //nolint:errorlint // Read returns it as it is
		l.cut()
	} else if forwarding {
		l.to(d).CloseWrite()
	}
}

// read sends arriving bytes to chunks, and returns the error at the end of the stream.
func (l *link) read(d direction, chunks chan<- chunk) error {
	for {
		memory := make([]byte, 4096)
		n, err := l.from(d).Read(memory)
		if n > 0 {
			chunks <- chunk{memory[:n], time.Now()}
		}
		if err != nil {
			return err
		}
	}
}

// forward writes a chunk as the current flow demands, and reports whether the direction goes on.
func (l *link) forward(d direction, c chunk) bool {
	for {
		f, changed := l.proxy.flow(d)
		if f.Drop {
			l.proxy.mu.Lock()
			defer l.proxy.mu.Unlock()
			l.lost[d] = true
			return true
		}
		timer := time.NewTimer(f.wait(c))
		select {
		case <-l.done:
			timer.Stop()
			return false
		case <-changed:
			timer.Stop()
		case <-timer.C:
			_, err := l.to(d).Write(c.bytes)
			return err == nil
		}
	}
}

// wait returns the time until a chunk is forwarded if the flow does not change.
func (f Flow) wait(c chunk) time.Duration {
	wait := time.Until(c.at.Add(f.Delay))
	if f.Rate > 0 {
		wait = max(wait, time.Duration(len(c.bytes))*time.Second/time.Duration(f.Rate))
	}
	if f.Hold {
		wait = math.MaxInt64
	}
	return wait
}
