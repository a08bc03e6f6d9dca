package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// failingListener fails with the errors, then returns connections.
type failingListener struct {
	net.Listener
	errors []error
	calls  int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.calls++; l.calls <= len(l.errors) {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.errors[l.calls-1])}
	}
	c, far := net.Pipe()
	_ = far.Close()
	return c, nil
}

func (l *failingListener) Close() error { return nil }

// A lack of files or memory ends no accept loop, and keeps none busy: 100 failures take 24 s of the
// test's time, and three lines in the log.
func TestAcceptSurvivesALackOfFiles(t *testing.T) {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ENETDOWN} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			inner := &failingListener{}
			for range 100 {
				inner.errors = append(inner.errors, e)
			}
			a := newAcceptor(inner, slog.New(slog.NewTextHandler(&log, nil)), nil)
			began := time.Now()
			c, err := a.Accept()
			if err != nil {
				t.Fatalf("%v: %v", e, err)
			}
			_ = c.Close()
			if took := time.Since(began); took < 20*time.Second || took > 30*time.Second {
				t.Errorf("%v: 100 failures took %v", e, took)
			}
			if n := strings.Count(log.String(), "\n"); n != 3 || a.failures.Load() != 100 {
				t.Errorf("%v: %d lines for %d failures: %s", e, n, a.failures.Load(), log.String())
			}
			_ = a.Close()
		})
	}
}

func TestAcceptEndsWithItsListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, e := range []error{net.ErrClosed, syscall.EBADF} {
			a := newAcceptor(&failingListener{errors: []error{e}}, slog.New(slog.DiscardHandler), nil)
			if _, err := a.Accept(); !errors.Is(err, e) {
				t.Errorf("got %v, want %v", err, e)
			}
		}
		a := newAcceptor(&failingListener{errors: []error{syscall.EMFILE, syscall.EMFILE, net.ErrClosed}}, slog.New(slog.DiscardHandler), newSpares())
		_ = a.Close() // during a lack of files
		began := time.Now()
		if _, err := a.Accept(); !errors.Is(err, net.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("after Close: %v, after %v", err, time.Since(began))
		}
	})
}

// The spare files leave room for as many connections at once, and are taken again when those end.
func TestSpareFilesAreForConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e []error
		for range spareFiles {
			e = append(e, syscall.EMFILE)
		}
		s := newSpares()
		a := newAcceptor(&failingListener{errors: e}, slog.New(slog.DiscardHandler), s)
		began := time.Now()
		c, err := a.Accept()
		if err != nil || time.Since(began) != 0 || len(s.files) != 0 {
			t.Errorf("got %v after %v, with %d spare files", err, time.Since(began), len(s.files))
		}
		_ = c.Close()
		if len(s.files) != spareFiles {
			t.Errorf("%d spare files after the end of a connection, want %d", len(s.files), spareFiles)
		}
		_ = a.Close()
		if s.fill(); len(s.files) != 0 {
			t.Errorf("%d spare files after the end", len(s.files))
		}
	})
}
