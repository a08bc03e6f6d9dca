package preface_test

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/preface"
	"github.com/weirlimit/weir/internal/testpipe"
)

var (
	first  = testpipe.TCP("192.0.2.1:1")
	second = testpipe.TCP("192.0.2.2:1")
	third  = testpipe.TCP("192.0.2.3:1")
)

// A record has the failures of a listener.
type record struct {
	mu     sync.Mutex
	failed []error
}

func (r *record) add(_ net.Conn, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err)
}

func (r *record) all() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// listen returns a listener whose preface is one byte, and accepts its connections until it is
// closed.
func listen(t *testing.T, most, perAddress int) (*testpipe.Listener, *record, <-chan net.Conn) {
	t.Helper()
	inner, r := testpipe.New(), new(record)
	l := preface.Listen(inner, preface.Options{
		Read: func(c net.Conn) (net.Conn, error) {
			var b [1]byte
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return nil, err
			}
			if b[0] == '!' {
				panic("a defect")
			}
			return c, nil
		},
		Timeout: time.Minute, Bounds: guard.New(guard.Options{Max: most, MaxPerAddress: perAddress}), Failed: r.add, Panics: guard.NewPanics(nil),
	})
	accepted := make(chan net.Conn, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return inner, r, accepted
}

func isClosed(e *testpipe.End) bool {
	synctest.Wait()
	select {
	case <-e.Closed:
		return true
	default:
		return false
	}
}

// A connection that has waited for Patience gives way to a new one; a younger one does not.
func TestSlowConnectionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, r, accepted := listen(t, 2, 2)
		_, oldest := inner.Dial(first)
		time.Sleep(preface.Patience / 2)
		_, younger := inner.Dial(second)
		if _, refused := inner.Dial(third); !isClosed(refused) || isClosed(oldest) || isClosed(younger) {
			t.Error("a connection that is not slow gave way")
		}
		time.Sleep(preface.Patience / 2)
		client, taken := inner.Dial(third)
		if !isClosed(oldest) || isClosed(younger) || isClosed(taken) {
			t.Error("the oldest connection did not give way, or another did")
		}
		_, _ = client.Write([]byte("x"))
		if got := (<-accepted).RemoteAddr(); got != net.Addr(third) {
			t.Errorf("accepted %v, want the new connection", got)
		}
		failed := r.all()
		if len(failed) != 2 || !errors.Is(failed[0], preface.ErrTooMany) || errors.Is(failed[1], preface.ErrTooMany) {
			t.Errorf("failures are %v", failed)
		}
	})
}

// Slow connections of one address give way to that address only, however many addresses are slow.
func TestSlowAddressesGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _, accepted := listen(t, 4, 2)
		var ends []*testpipe.End
		for _, from := range []net.Addr{first, second, first} {
			_, e := inner.Dial(from)
			ends = append(ends, e)
		}
		time.Sleep(preface.Patience)
		client, taken := inner.Dial(first)
		if !isClosed(ends[0]) || isClosed(ends[1]) || isClosed(ends[2]) || isClosed(taken) {
			t.Error("of the address with two connections not the oldest gave way")
		}
		_, _ = client.Write([]byte("x"))
		<-accepted
		for range 50 { // each finds room, though nobody leaves
			client, taken := inner.Dial(third)
			if isClosed(taken) {
				t.Fatal("a connection was refused while others are slow")
			}
			_, _ = client.Write([]byte("x"))
			<-accepted
		}
	})
}

// A panic closes its connection, and frees its room.
func TestPanicsFreeTheirRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _, accepted := listen(t, 1, 1)
		client, broken := inner.Dial(first)
		_, _ = client.Write([]byte("!"))
		if !isClosed(broken) {
			t.Error("after a panic the connection is open")
		}
		client, _ = inner.Dial(first)
		_, _ = client.Write([]byte("x"))
		<-accepted
	})
}
