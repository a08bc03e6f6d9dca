package memcached_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

func bindNamed(t interface{ Fatal(...any) }, s store.Store, text string) store.Binding {
	b, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNamesAreAccounts runs random operations on few keys of a name, under limits that differ, through two stores, and on a map of accounts.
func TestNamesAreAccounts(t *testing.T) {
	texts := append([]string{"10/day", "concurrent 3 lease=10s"}, limits...)
	server := shared(t)
	o := trusted(t)
	stores := []store.Store{open(t, server.URL(), o), open(t, server.URL(), o)}
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		model := map[string]algorithm.Account{}
		now := noon
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			text := rapid.SampledFrom(texts).Draw(t, "limit")
			key := fmt.Sprint(round, rapid.IntRange(0, 1).Draw(t, "key"))
			now += rapid.SampledFrom([]int64{0, 1e3, 1e6, 3e8, 1e9, 7e9, 3600e9}).Draw(t, "gap")
			op := algorithm.Op{
				Kind: rapid.SampledFrom([]algorithm.Kind{
					algorithm.Take, algorithm.Take, algorithm.TakeUpTo, algorithm.Refund, algorithm.Reset, algorithm.Cancel,
					algorithm.Renew, algorithm.Reserve, algorithm.Reserve, algorithm.Commit,
				}).Draw(t, "kind"),
				Cost: rapid.SampledFrom([]int64{1, 1, 1, 2, 3, 0, 7, 1 << 40}).Draw(t, "cost"),
				End:  now + rapid.SampledFrom([]int64{0, 1e9, 1e10}).Draw(t, "end"),
				ID:   rapid.Int64Range(1, 3).Draw(t, "id"),
				Life: rapid.SampledFrom([]int64{1e3, 1e9, 60e9, 7200e9}).Draw(t, "life"),
			}
			got, err := bindNamed(t, stores[rapid.IntRange(0, 1).Draw(t, "store")], text).Do(context.Background(), key, op, now)
			p, e := store.CompileMicroseconds(store.Spec{Limit: algorithm.MustParseLimit(text)})
			if e != nil {
				t.Fatal(e)
			}
			in := op
			in.End, in.Life = op.End/1000, op.Life/1000
			next, want := model[key].Apply(p, in, now/1000)
			model[key] = next
			if err != nil || got != want.Verdict() {
				t.Fatalf("%s: %+v at %d on %s: got %+v, %v; want %+v", text, op, now, key, got, err, want.Verdict())
			}
		}
	})
}

// Pitfall S18: while processes have one limit of a name or another, no more is admitted in all than the largest says.
func TestS18LimitsChange(t *testing.T) {
	server := shared(t)
	o := mine(t)
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i, text := range []string{"30/720h", "fixed-window 40/720h", "sliding-log 20/720h", "concurrent 10 lease=720h"} {
		b := bindNamed(t, open(t, server.URL(), o), text)
		for range 50 {
			wg.Go(func() { granted.Add(max(0, take(t, b, "k", int64(1+i%2), store.OwnClock).Granted)) })
		}
	}
	wg.Wait()
	if rest := take(t, bindNamed(t, open(t, server.URL(), o), "fixed-window 40/720h"), "k", 0, store.OwnClock).Remaining; granted.Load()+rest != 40 {
		t.Errorf("%d were admitted, and %d more would be; want 40 in all", granted.Load(), rest)
	}
}

// Pitfalls S1 and S7, of accounts: an item lives for as long as a reservation in it, and has an expiration.
func TestS7AccountsExpire(t *testing.T) {
	server := shared(t)
	o := mine(t)
	b := bindNamed(t, open(t, server.URL(), o), "10/1m")
	wait := begin(t, server)
	do(t, b, "k", algorithm.Op{Kind: algorithm.Reserve, Cost: 1, ID: 7, Life: 1000 * second}, store.OwnClock)
	wait.expires(t, o.Prefix+":1:{k}:login", 1000+skewAndTick)
}

func TestAccountsAreReadable(t *testing.T) {
	server := shared(t)
	o := trusted(t)
	s := open(t, server.URL(), o)
	b := bindNamed(t, s, "10/1m")
	for _, step := range []struct {
		op   algorithm.Op
		want string
	}{
		{algorithm.Op{Cost: 1}, "10/1m|1700000006000000"},
		{algorithm.Op{Kind: algorithm.Reserve, Cost: 2, ID: 7, Life: 60 * second}, "10/1m;hold=7,2,1700000000000000,1700000018000000,7,1700000060000000|1700000018000000"},
		{algorithm.Op{Kind: algorithm.Commit, Cost: 1, ID: 7}, "10/1m|1700000012000000"},
	} {
		do(t, b, "user:42", step.op, noon)
		if got := value(t, server, o.Prefix+":1:{user:42}:login"); got != step.want {
			t.Errorf("%+v: %q, want %q", step.op, got, step.want)
		}
	}
}

// What does not fit into an item is an error, and nothing is changed.
func TestAccountThatDoesNotFit(t *testing.T) {
	const most, used = 3_225, 3_200
	server := started(t, "-I", "64k", "-o", "slab_chunk_max=65536")
	o := trusted(t)
	s := open(t, server.URL(), o)
	limit := fmt.Sprintf("sliding-log %d/1h", most)
	b := bindNamed(t, s, limit)
	log := []byte(limit + "|")
	for i := range int64(used) {
		log = fmt.Appendf(log, "%d:1:", noon/1000+i)
	}
	log = log[:len(log)-1]
	ask(t, server, fmt.Sprintf("set %s:1:{k}:login 0 0 %d\r\n%s\r\n", o.Prefix, len(log), log), "STORED")
	const now = noon + second
	held := int64(0)
	for ; held < algorithm.MaxHolds; held++ {
		op := algorithm.Op{Kind: algorithm.Reserve, ID: 1<<62 + held, Life: 60 * second}
		if v, err := b.Do(context.Background(), "k", op, now); err != nil {
			if !errors.Is(err, swap.ErrNothingDone) || !strings.Contains(err.Error(), "accepted: up to 65024") {
				t.Errorf("%+v, %v", v, err)
			}
			break
		}
	}
	if held < 10 || held == algorithm.MaxHolds {
		t.Errorf("%d reservations fitted", held)
	}
	for i := range held {
		if v := do(t, b, "k", algorithm.Op{Kind: algorithm.Commit, ID: 1<<62 + i}, now); v.Granted != 0 || v.Remaining != most-used {
			t.Fatalf("reservation %d, settled: %+v", i, v)
		}
	}
}
