package memcached_test

import (
	"io"
	"testing"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/storetest"
)

func TestConformance(t *testing.T) {
	server := started(t)
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
		Process: server.URL(),
		Restart: func(t testing.TB) { server.Restart(t) },
		InTurn:  true,
	})
}
