package testengine

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	startWithin = 10 * time.Minute // the machine may be busy with other tests
	stopWithin  = time.Minute
	attempts    = 8       // to find a port that nobody takes before the engine does
	mostLogged  = 4 << 10 // bytes of an engine's log that are shown
)

// A Server is an engine's process. Its methods may be used by one goroutine at a time.
type Server struct {
	engine engine
	dir    string
	port   int
	exe    string
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	status error         // how; to be read after that
}

// An engine is what servers differ in.
type engine struct {
	scheme   string
	path     string // of the URL
	binary   func() (string, error)
	optional bool // to be skipped even where engines are required
	prepare  func(s *Server) error
	args     func(s *Server) []string
	ready    func(s *Server) error // nil when this very process answers
	user     *engineUser           // nil for that of the test
	stop     os.Signal             // asks for a graceful end
	crash    os.Signal             // ends the process as a crash would
}

// start returns a running server. It ends with the test.
func start(t testing.TB, e engine) *Server {
	t.Helper()
	s, err := launch(e)
	switch {
	case err == nil:
	case errors.As(err, new(missingError)):
		missing(t, e, err)
	default:
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	s.logOnFailure(t)
	return s
}

// missingError says that an engine is not installed.
type missingError struct{ name string }

func (e missingError) Error() string { return e.name + " is not installed" }

// missing skips the test, or fails it where all engines must be there.
func missing(t testing.TB, e engine, err error) {
	t.Helper()
	switch {
	case e.optional:
		t.Skipf("%v; it is optional", err)
	case os.Getenv("WEIR_ENGINES") == "require":
		t.Fatalf("%v, and WEIR_ENGINES=require", err)
	default:
		t.Skipf("%v", err)
	}
}

// launch starts a server on a port that is free.
func launch(e engine) (*Server, error) {
	exe, err := e.binary()
	if err != nil {
		return nil, err
	}
	s := &Server{engine: e, exe: exe}
	if s.dir, err = os.MkdirTemp("", "weir-engine-"); err != nil {
		return nil, err
	}
	if err := e.user.own(s.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	for range attempts {
		if s.port, err = freePort(); err == nil {
			err = s.prepareAndStart()
		}
		if err == nil {
			return s, nil
		}
	}
	err = fmt.Errorf("starting %s: %w\n%s", exe, err, s.log(0))
	s.remove()
	return nil, err
}

func (s *Server) prepareAndStart() error {
	if s.engine.prepare != nil {
		if err := s.engine.prepare(s); err != nil {
			return err
		}
	}
	return s.start()
}

// start starts the process on the server's port and waits until it is ready.
func (s *Server) start() error {
	out, err := os.OpenFile(s.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(s.exe, s.engine.args(s)...) // it ends with the test
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	confine(cmd, s.engine)
	if err := fork(cmd); err != nil {
		return err
	}
	s.cmd, s.ended = cmd, make(chan struct{})
	go func() {
		s.status = cmd.Wait()
		close(s.ended)
	}()
	if err := s.await(); err != nil {
		s.end(os.Kill)
		return err
	}
	return nil
}

// await polls until the process is ready, or has ended.
func (s *Server) await() error {
	err := errors.New("not asked yet")
	for until := time.Now().Add(startWithin); time.Now().Before(until); {
		if err = s.engine.ready(s); err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it ended at once: %w", s.status)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("it was not ready within %v: %w", startWithin, err)
}

// end sends a signal, and another that can't be ignored when the process has not ended in time.
func (s *Server) end(signal os.Signal) {
	if !s.running() {
		return
	}
	s.resume() // a stopped process hears nothing
	s.cmd.Process.Signal(signal)
	select {
	case <-s.ended:
	case <-time.After(stopWithin):
		s.cmd.Process.Kill()
		<-s.ended
	}
}

func (s *Server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *Server) remove() {
	s.end(s.engine.crash)
	os.RemoveAll(s.dir)
}

// Addr returns host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the address as a URL: redis://host:port, memcached://host:port or
// postgres://postgres@host:port/weir?sslmode=disable.
func (s *Server) URL() string { return s.engine.scheme + s.Addr() + s.engine.path }

// Pid returns the id of the process.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Restart stops the engine, gracefully, and starts it again on the same port and directory.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Stop ends the engine gracefully.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.end(s.engine.stop)
}

// Kill ends the engine at once, as a crash of its process would.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.end(s.engine.crash)
}

// KillAll ends all processes of the engine with SIGKILL, so that none of them can clean up. Kill
// lets PostgreSQL end its own children.
func (s *Server) KillAll(t testing.TB) {
	t.Helper()
	if err := s.kill(); err != nil {
		t.Fatal(err)
	}
}

// Start starts the engine again after Stop, Kill or KillAll. It returns when it is ready.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.running() {
		t.Fatalf("%s runs already", s.exe)
	}
	var err error
	for until := time.Now().Add(startWithin); time.Now().Before(until); {
		if err = s.start(); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond) // what is left of the old process may still hold the port or the directory
	}
	t.Fatalf("starting %s again: %v\n%s", s.exe, err, s.log(0))
}

// Pause stops the engine's processes where they are: connections stay open, and nothing is answered.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	if err := s.pause(); err != nil {
		t.Fatal(err)
	}
}

// Resume lets the processes go on after Pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	if err := s.resume(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// log returns what the engine logged after a number of bytes, at most the last mostLogged.
func (s *Server) log(after int64) []byte {
	text, err := os.ReadFile(s.logFile())
	if err != nil {
		return nil
	}
	text = text[min(after, int64(len(text))):]
	return bytes.TrimSpace(text[max(0, len(text)-mostLogged):])
}

func (s *Server) logOnFailure(t testing.TB) {
	var before int64
	if info, err := os.Stat(s.logFile()); err == nil {
		before = info.Size()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s on %s:\n%s", s.exe, s.Addr(), s.log(before))
		}
	})
}

var serial sync.Mutex // around what must not happen twice at a time in this process
