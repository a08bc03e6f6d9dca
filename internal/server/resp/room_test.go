package resp

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// connect makes a connection that the server serves, and returns the client's end. There is no room between the two.
func connect(s *Server) net.Conn {
	near, far := net.Pipe()
	s.accept(far)
	return near
}

func TestRepliesThatNobodyReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		s.options.MaxBuffered = 1 << 20
		deaf, ask := make([]net.Conn, 20), pipeline(1, "COMMAND|INFO"+strings.Repeat("|ping", 1000))
		for i := range deaf {
			deaf[i] = connect(s)
			go func() { _, _ = deaf[i].Write(ask) }()
		}
		synctest.Wait()
		held, stats := s.buffered.Load(), s.Stats()
		if held > 1<<20 || held < 1<<19 || stats.Cut == 0 || stats.Cut+stats.Connections != 20 {
			t.Errorf("%d bytes are held for clients that don't read, of 1 MB allowed; %+v", held, stats)
		}
		short := connect(s)
		go func() { _, _ = io.WriteString(short, "PING\r\n") }()
		if _, err := io.ReadFull(short, make([]byte, len("+PONG\r\n"))); err != nil {
			t.Errorf("short replies are not given any more: %v", err)
		}
		for _, c := range append(slices.Clip(deaf), short) {
			_ = c.Close()
		}
		synctest.Wait()
		if held := s.buffered.Load(); held != 0 {
			t.Errorf("%d bytes are held for clients that left", held)
		}
	})
}

func TestListOfClientsIsNotBuiltWithoutRoomForIt(t *testing.T) {
	s := newTestServer()
	for id := range int64(1000) {
		s.conns[newConn(s, &script{}, id)] = struct{}{}
	}
	c := newConn(s, nil, 1000)
	s.options.MaxBuffered = 1 << 20
	c.receive(pipeline(1, "CLIENT|LIST"))
	if want := "-ERR too many long replies are waiting to be read, try again\r\n"; string(c.out.buf) != want {
		t.Errorf("a list longer than what may be held: %.80q", c.out.buf)
	}
	c.flush()
	s.options.MaxBuffered = 16 << 20
	client := &script{pieces: [][]byte{pipeline(1, "CLIENT|LIST")}}
	c.net = client
	c.serve()
	if n := strings.Count(client.replies.String(), "\nid="); n != 1000 || s.buffered.Load() != 0 {
		t.Errorf("a list of 1000 clients has %d lines, and leaves %d bytes in the account", n, s.buffered.Load())
	}
}

func TestCommandIsDocumentedOnce(t *testing.T) {
	c := newConn(newTestServer(), nil, 1)
	c.receive(pipeline(1, "COMMAND|DOCS"+strings.Repeat("|ping|PING", 500)))
	once := string(c.out.buf)
	c.out.buf = nil
	if c.receive(pipeline(1, "COMMAND|DOCS|ping")); once != string(c.out.buf) {
		t.Errorf("named a thousand times it gets %d bytes, named once %d", len(once), len(c.out.buf))
	}
}
