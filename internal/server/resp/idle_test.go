package resp

import (
	"context"
	"io"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// only returns the single connection of a server.
func (s *Server) only() *conn { return slices.Collect(maps.Keys(s.conns))[0] }

// converse sends commands and reads until their replies end with a text.
func converse(t *testing.T, c net.Conn, input []byte, end string) {
	t.Helper()
	go func() { _, _ = c.Write(input) }()
	got, b := "", make([]byte, 1<<16)
	for !strings.HasSuffix(got, end) {
		n, err := c.Read(b)
		if err != nil {
			t.Fatalf("after %.80q: %v", got, err)
		}
		got += string(b[:n])
	}
}

func TestIdleConnectionsGiveTheirBuffersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		s.options.Waits, s.options.IdleTimeout = true, time.Hour
		client := connect(s)
		busy := append(pipeline(300, "WEIR.TAKE|#|5/1h"), pipeline(1, "PING"+strings.Repeat("|x", mostArgs-1))...)
		for range 2 {
			converse(t, client, append(busy, pipeline(1, "PING")...), "+PONG\r\n")
			synctest.Wait()
			c := s.only()
			if len(c.in) < leastInput || cap(c.args) < mostArgs || cap(c.queue) == 0 {
				t.Errorf("a busy connection has %d bytes for input, %d arguments, %d queued", len(c.in), cap(c.args), cap(c.queue))
			}
			began := time.Now()
			for time.Since(began) < shrinkTime+10*time.Second {
				s.sweepOnce(time.Now())
				time.Sleep(5 * time.Second)
				synctest.Wait()
			}
			if len(c.in) != idleInput || c.args != nil || c.queue != nil || c.out.buf != nil || c.requests != nil {
				t.Errorf("an idle connection has %d bytes for input, %d arguments, %d queued, %d bytes for replies", len(c.in), cap(c.args), cap(c.queue), cap(c.out.buf))
			}
			if idle := c.idle(time.Now()); idle < shrinkTime {
				t.Errorf("CLIENT LIST has it idle for %v", idle)
			}
		}
		time.Sleep(time.Hour)
		s.sweepOnce(time.Now())
		if s.Stats().Cut != 1 {
			t.Errorf("the idle timeout is not counted from the last command: %+v", s.Stats())
		}
		_ = client.Close()
		synctest.Wait()
	})
}

// TestConnectionWokenDuringShutdownEnds has a connection that gives its buffers back when the
// server ends.
func TestConnectionWokenDuringShutdownEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		client := connect(s)
		converse(t, client, pipeline(1, "PING"), "+PONG\r\n")
		synctest.Wait()
		c := s.only()
		c.awoken.Store(true) // as sweep does meanwhile
		ended := make(chan error)
		go func() { ended <- s.Shutdown(context.Background()) }()
		if _, err := io.ReadAll(client); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryOfLongBuffersIsReturned(t *testing.T) {
	s, collections, now := newTestServer(), 0, time.Now()
	s.freeMemory = func() { collections++ }
	long := pipeline(1, "ECHO|"+strings.Repeat("x", 1<<20-100))
	for _, test := range []struct {
		commands int
		after    time.Duration
		want     int
	}{
		{10, time.Second, 0}, {30, time.Second, 1}, {100, time.Second, 1}, {0, collectTime, 2}, {0, collectTime, 2},
	} {
		for range test.commands {
			c := newConn(s, nil, 1)
			c.feed(long)
			c.close()
		}
		now = now.Add(test.after)
		s.sweepOnce(now)
		if s.collect(now); collections != test.want {
			t.Errorf("after %d long commands and %v: %d collections, want %d", test.commands, test.after, collections, test.want)
		}
	}
}

// TestIdleConnectionsAreSmall measures the memory of connections after a busy time.
func TestIdleConnectionsAreSmall(t *testing.T) {
	const connections = 1000
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer()
		before := measure()
		clients, busy := make([]net.Conn, connections), pipeline(300, "WEIR.TAKE|k|5/1h")
		for i := range clients {
			clients[i] = connect(s)
			converse(t, clients[i], append(busy, pipeline(1, "PING")...), "+PONG\r\n")
		}
		synctest.Wait()
		active := (measure() - before) / connections
		s.sweepOnce(time.Now())
		time.Sleep(shrinkTime)
		s.sweepOnce(time.Now())
		synctest.Wait()
		idle := (measure() - before) / connections
		t.Logf("a connection takes %d bytes after a pipeline, and %d when it is idle", active, idle)
		if idle > 12<<10 {
			t.Errorf("an idle connection takes %d bytes, want at most 12 KB", idle)
		}
		for _, c := range clients {
			_ = c.Close()
		}
		synctest.Wait()
	})
}
