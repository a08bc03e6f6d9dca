package server

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
)

const (
	// leastAcceptPause and mostAcceptPause bound the time between two attempts to accept.
	leastAcceptPause, mostAcceptPause = time.Millisecond, 250 * time.Millisecond
	// spareFiles is how many open files are kept for the connections of the admin listener.
	spareFiles = 4
)

// An acceptor is a listener whose Accept survives a lack of open files or memory: it tries again
// after a pause, and counts and logs the failures. It may have spare files, which it gives up for
// connections when no other files are left.
type acceptor struct {
	net.Listener
	log      *slog.Logger
	spares   *spares // nil: none
	failures atomic.Int64
	sample   guard.Sampler
	once     sync.Once
	closed   chan struct{}
}

func newAcceptor(l net.Listener, log *slog.Logger, s *spares) *acceptor {
	return &acceptor{Listener: l, log: log, spares: s, closed: make(chan struct{})}
}

// Accept returns the next connection.
func (a *acceptor) Accept() (net.Conn, error) {
	pause := leastAcceptPause
	for {
		c, err := a.Listener.Accept()
		switch {
		case err == nil && a.spares != nil:
			return &sparedConn{Conn: c, spares: a.spares}, nil
		case err == nil || !passes(err):
			return c, err
		}
		n := a.failures.Add(1)
		if a.sample.Pass(time.Now()) {
			a.log.Error("connections can't be accepted, trying again", "error", err, "count", n)
		}
		if lacksFiles(err) && a.spares.giveUp() {
			continue
		}
		select {
		case <-time.After(pause):
		case <-a.closed:
		}
		pause = min(2*pause, mostAcceptPause)
		a.spares.fill()
	}
}

// Close stops listening.
func (a *acceptor) Close() error {
	a.once.Do(func() {
		close(a.closed)
		a.spares.close()
	})
	return a.Listener.Close()
}

func lacksFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// passes reports whether another attempt to accept may succeed: there were too few files or too
// little memory, or the connection's network failed, which Linux reports here.
func passes(err error) bool {
	for _, e := range []syscall.Errno{
		syscall.ENOBUFS, syscall.ENOMEM, syscall.EPROTO, syscall.ENETDOWN, syscall.ENETUNREACH, syscall.EHOSTUNREACH,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	temporary, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && temporary.Temporary()
}

// spares are open files without use. Closed, each leaves room for a connection. The methods of nil do
// nothing.
type spares struct {
	mu     sync.Mutex
	files  []*os.File
	closed bool
}

func newSpares() *spares {
	s := &spares{}
	s.fill()
	return s
}

// fill opens the files that are missing, as far as there are any.
func (s *spares) fill() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.files) < spareFiles && !s.closed {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		s.files = append(s.files, f)
	}
}

// giveUp closes one file. It returns false if there is none.
func (s *spares) giveUp() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.files)
	if n == 0 {
		return false
	}
	_ = s.files[n-1].Close()
	s.files = s.files[:n-1]
	return true
}

func (s *spares) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for s.giveUp() {
	}
}

// A sparedConn gives its file back to the spare files.
type sparedConn struct {
	net.Conn
	spares *spares
}

// Close closes the connection.
func (c *sparedConn) Close() error {
	err := c.Conn.Close()
	c.spares.fill()
	return err
}

// CloseWrite ends the output, and goes on receiving.
func (c *sparedConn) CloseWrite() error { return guard.CloseWrite(c.Conn) }
