package testengine

import (
	"slices"
	"sync"
	"testing"
)

// Shared makes a function that starts an engine for the first test that calls it, and returns the same to later ones. The engine
// lives until Close, so tests must bear what others leave in it:
//
//	var server = engine.Shared(func(t testing.TB) *engine.Server { return engine.Redis(t) })
//
//	func TestMain(m *testing.M) { storetest.Main(m, open, engine.Close) }
func Shared(start func(t testing.TB) *Server) func(t testing.TB) *Server {
	var mu sync.Mutex
	var server *Server
	return func(t testing.TB) *Server {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if server == nil {
			server = start(&lasting{TB: t})
		}
		server.logOnFailure(t)
		return server
	}
}

// Close ends the engines of Shared. It belongs at the end of TestMain.
func Close() {
	serial.Lock()
	defer serial.Unlock()
	for _, f := range slices.Backward(atClose) {
		f()
	}
	atClose = nil
}

var atClose []func()

// lasting is a test whose cleanups wait for Close.
type lasting struct{ testing.TB }

// Failed is false: the test has ended by then, and can't be told anything.
func (l *lasting) Failed() bool { return false }

func (l *lasting) Cleanup(f func()) {
	serial.Lock()
	defer serial.Unlock()
	atClose = append(atClose, f)
}
