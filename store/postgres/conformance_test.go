package postgres_test

import (
	"io"
	"testing"

	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/storetest"
)

func TestConformance(t *testing.T) {
	server := testengine.Postgres(t) // its own: the suite restarts it
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			t.Helper()
			s, err := openFor(server.URL(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.(io.Closer).Close() })
			return s
		},
		Process:    server.URL(),
		Restart:    func(t testing.TB) { server.Restart(t) },
		Persistent: true,
		// InTurn is not said: parts are taken in turn after many swaps in a row were lost, which the suite does not bring about.
	})
}
