package server

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// TestFullStoreIsLoggedOncePerEpisode, with the largest name, and is a warning until a minute after
// the last denial.
func TestFullStoreIsLoggedOncePerEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		log := slog.New(slog.NewTextHandler(&lines, nil))
		m := memory.New(memory.Options{MaxKeys: 2})
		b, err := m.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("1/1h")})
		if err != nil {
			t.Fatal(err)
		}
		f := &fullness{store: m, log: log}
		tasks := newTasks(guard.NewPanics(log))
		tasks.every(fullnessPeriod, "fullness", f.check)
		defer tasks.close()
		flood := func() {
			for i := range 10 {
				_, _ = b.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, 0)
			}
		}
		check := func(episodes int, full bool) {
			t.Helper()
			time.Sleep(2 * fullnessPeriod)
			synctest.Wait()
			if n := strings.Count(lines.String(), "most=login"); n != episodes || f.full() != full {
				t.Errorf("%d lines, want %d; full: %v, want %v:\n%s", n, episodes, f.full(), full, lines.String())
			}
		}
		check(0, false)
		flood()
		check(1, true)
		flood()
		check(1, true)
		time.Sleep(fullnessEnd)
		check(1, false)
		flood()
		check(2, true)
	})
}
