package clients_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// A transaction gives two clients one plan, again and again: who reads a table never sees two.
func TestReadersSeeWholeChanges(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		run(t, url, `INSERT INTO weir_clients (client, plan) VALUES ('a', 'p0'), ('b', 'p0')`)
		var seen atomic.Int64
		f := follow(t, url, clients.Options{Poll: 10 * time.Millisecond, Policies: policies{use: func(c policy.Clients) error {
			if a, b := has(c, "a"), has(c, "b"); a != b {
				t.Errorf("a has %s, b has %s", a, b)
			}
			seen.Add(1)
			return nil
		}}})
		done := make(chan struct{})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					table := f.Table()
					if a, b := has(table, "a"), has(table, "b"); a != b || a == "" {
						t.Errorf("a has %s, b has %s", a, b)
						return
					}
					if has(f, "a") == "" {
						t.Error("a has nothing")
						return
					}
				}
			})
		}
		db := plain(t, url)
		for i := range 40 {
			tx, err := db.BeginTx(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"a", "b"} {
				if _, err := tx.ExecContext(context.Background(), fmt.Sprintf(`UPDATE weir_clients SET plan = 'p%d' WHERE client = '%s'`, i+1, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		db.Close()
		until(t, "the last is seen", func() bool { return has(f, "b") == "p40" })
		close(done)
		readers.Wait()
		t.Logf("%d tables", seen.Load())
	})
}

// Writers that overlap lose no change, whichever of them commits first: each takes its number when it has its turn.
func TestOverlappingWriters(t *testing.T) {
	forEach(t, func(t *testing.T, url string) {
		f := follow(t, url, clients.Options{Poll: 10 * time.Millisecond})
		const writers, changes = 6, 15
		var wg sync.WaitGroup
		for w := range writers {
			d := open(t, url)
			wg.Go(func() {
				for i := range changes {
					for _, name := range []string{fmt.Sprint("own", w), "shared"} {
						set := func() error { return d.Set(context.Background(), clients.Client{Name: name, Plan: fmt.Sprint("p", i)}) }
						err := set()
						// SQLite's queue is not fair
						for err != nil && strings.Contains(err.Error(), "database is locked") {
							err = set()
						}
						if err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		until(t, "all are seen", func() bool {
			all := f.Status().Clients == writers+1
			for w := range writers {
				all = all && has(f, fmt.Sprint("own", w)) == fmt.Sprint("p", changes-1)
			}
			return all
		})
	})
}
