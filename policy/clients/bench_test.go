package clients_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir/policy/clients"
)

const million = 1_000_000

// quiet logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// kept keeps a table from being collected.
var kept *clients.Table

// all is a table of everybody, made once.
var all = sync.OnceValues(func() (*clients.Table, error) {
	var list []clients.Client
	everybody(func(c clients.Client, _ error) bool { list = append(list, c); return true })
	return clients.NewTable(list...)
})

// name is that of a client, of 20 bytes, as keys of an API may be.
func name(i int) string { return fmt.Sprintf("client-%013x", uint64(i)*2654435761) }

// everybody are a million clients: of a hundred, one has limits of its own, out of a hundred different ones, and one a bounded time.
func everybody(yield func(clients.Client, error) bool) {
	until := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range million {
		c := clients.Client{Name: name(i), Plan: [...]string{"free", "silver", "gold"}[i%3]}
		switch i % 100 {
		case 0:
			c.Plan, c.Limits = "", limits(fmt.Sprintf("%d/1m", 100+i/100%100), "50/1s")
		case 1:
			c.Until = until
		}
		if !yield(c, nil) {
			return
		}
	}
}

// BenchmarkMillion says for a million clients how long loading takes from each kind of database and from the snapshot, how many bytes they take
// in memory, and until when a change of one, or of many by one statement, is in effect:
//
//	go test -run - -bench Million -benchtime 3x -v ./policy/clients
func BenchmarkMillion(b *testing.B) {
	for kind, create := range kinds {
		b.Run(kind, func(b *testing.B) {
			url := create(b)
			if _, err := clients.Migrate(b.Context(), url); err != nil {
				b.Fatal(err)
			}
			d := open(b, url)
			began := time.Now()
			if _, err := d.Put(context.Background(), everybody); err != nil {
				b.Fatal(err)
			}
			b.Logf("written in %s", time.Since(began).Round(time.Millisecond))
			b.Run("load", func(b *testing.B) { benchmarkLoad(b, url) })
			b.Run("change", func(b *testing.B) { benchmarkChange(b, url, d) })
			for _, many := range []int{10_000, 100_000, million} {
				b.Run(fmt.Sprint("change of ", many), func(b *testing.B) { benchmarkBulk(b, url, many) })
			}
			b.Run("snapshot", func(b *testing.B) { benchmarkSnapshot(b, url) })
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func benchmarkLoad(b *testing.B, url string) {
	for b.Loop() {
		kept = nil
		before := heap()
		b.StartTimer()
		f, err := clients.Follow(context.Background(), url, clients.Options{Poll: time.Hour, Log: quiet})
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		kept = f.Table()
		f.Close()
		b.ReportMetric(float64(heap()-before)/million, "B/client")
		if kept.Len() != million {
			b.Fatalf("%d clients", kept.Len())
		}
		b.StartTimer()
	}
}

func benchmarkChange(b *testing.B, url string, d *clients.Database) {
	f, err := clients.Follow(context.Background(), url, clients.Options{Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for i := 0; b.Loop(); i++ {
		plan := fmt.Sprint("plan", i)
		if err := d.Set(context.Background(), clients.Client{Name: name(7), Plan: plan}); err != nil {
			b.Fatal(err)
		}
		for has(f, name(7)) != plan {
			time.Sleep(time.Millisecond)
		}
	}
}

func benchmarkSnapshot(b *testing.B, url string) {
	path := filepath.Join(b.TempDir(), "clients.snapshot")
	f, err := clients.Follow(context.Background(), url, clients.Options{Poll: time.Hour, Snapshot: path, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	f.Close()
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size())/million, "file-B/client")
	}
	for b.Loop() {
		f, err := clients.Follow(context.Background(), "postgres://127.0.0.1:1/away", clients.Options{Poll: time.Hour, Snapshot: path, Log: quiet})
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}

// benchmarkBulk changes the first of all clients by one statement, whose own time is told apart.
func benchmarkBulk(b *testing.B, url string, many int) {
	f, err := clients.Follow(context.Background(), url, clients.Options{Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var writing, live time.Duration
	for i := 0; b.Loop(); i++ {
		plan := fmt.Sprintf("bulk%d-%d", many, i)
		began := time.Now()
		run(b, url, fmt.Sprintf(`UPDATE weir_clients SET plan = '%s', limits = NULL WHERE client IN (SELECT client FROM weir_clients ORDER BY client LIMIT %d)`, plan, many))
		written := time.Now()
		for has(f, name(0)) != plan { // its name is the first
			time.Sleep(time.Millisecond)
		}
		writing, live = writing+written.Sub(began), live+time.Since(written)
	}
	b.ReportMetric(writing.Seconds()/float64(b.N), "s-statement/op")
	b.ReportMetric(live.Seconds()/float64(b.N), "s-until-live/op")
}

// BenchmarkLookup looks up clients among a million, often enough that the first ones do not count:
//
//	go test -run - -bench Lookup -benchtime 5000000x ./policy/clients
func BenchmarkLookup(b *testing.B) {
	table, err := all()
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 1<<16)
	for i := range names {
		names[i] = name(i * 15)
	}
	b.ResetTimer()
	b.ReportAllocs()
	for i := range b.N {
		if _, ok := table.Grant(names[i&(len(names)-1)]); !ok {
			b.Fatal("not found")
		}
	}
}
