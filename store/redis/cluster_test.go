package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

func part(t testing.TB, s *redis.Store, name, text, key string, cost int64) store.Part {
	t.Helper()
	return store.Part{Binding: bind(t, s, name, text), Limit: algorithm.MustParseLimit(text), Key: key, Cost: cost}
}

func takeAll(t testing.TB, s *redis.Store, parts ...store.Part) []store.Outcome {
	t.Helper()
	verdicts, err := s.TakeAll(context.Background(), parts, store.OwnClock, nil)
	if err != nil || len(verdicts) != len(parts) {
		t.Fatalf("%d of %d verdicts, %v", len(verdicts), len(parts), err)
	}
	return verdicts
}

// allOrNothing takes parts that are all charged, or none.
func allOrNothing(t *testing.T, s *redis.Store, keys ...string) {
	t.Helper()
	name := t.Name() + strings.Join(keys, ",")
	texts := []string{"100/1h", "quota-reset 7/1h", "sliding-log 100/1h", "sliding-window 100/1h", "7/1m burst=50", "hybrid 50/1h", "sliding-buckets 90/1h"}
	var parts []store.Part
	for i, text := range texts {
		parts = append(parts, part(t, s, name, text, keys[i%len(keys)], 2))
	}
	for i := range 5 {
		verdicts := takeAll(t, s, parts...)
		for j, v := range verdicts {
			want := parts[j].Limit.Capacity() - 2*int64(min(i+1, 3))
			granted := int64(2)
			if i >= 3 { // the second has 1 left
				granted = 0
				if j == 1 {
					granted = -1
				}
			}
			if v.Granted != granted || v.Remaining < want || v.Remaining > want+1 {
				t.Errorf("keys %q, request %d, %s: %+v, want %d granted, %d remaining", keys, i, texts[j], v, granted, want)
			}
		}
	}
	parts[0].Cost = 1000 // never
	for j, v := range takeAll(t, s, parts...) {
		if j == 0 && (v.Granted != -1 || v.Wait != algorithm.Never) || j > 1 && v.Granted != 0 {
			t.Errorf("keys %q, more than the capacity, %s: %+v", keys, texts[j], v)
		}
	}
}

func TestTakeAll(t *testing.T) {
	s := open(t, redis.Options{})
	allOrNothing(t, s, "one")
	allOrNothing(t, s, "one", "two", "three", "four")
	reservedTogether(t, s)
	c := raw(t, server(t).Addr())
	parts := []store.Part{part(t, s, t.Name(), "10/1h", "a", 1), part(t, s, t.Name(), "fixed-window 10/1h", "b", 1), part(t, s, t.Name(), "10/1h", "c", 0)}
	takeAll(t, s, parts...)
	before := calls(t, c, "evalsha")
	takeAll(t, s, parts...)
	if n := calls(t, c, "evalsha") - before; n != 1 {
		t.Errorf("%d calls for one request", n)
	}
	if verdicts, err := s.TakeAll(t.Context(), nil, store.OwnClock, nil); len(verdicts) != 0 || err != nil {
		t.Error(verdicts, err)
	}
	if _, err := s.TakeAll(t.Context(), parts, 0, nil); !errors.Is(err, store.ErrClientTime) {
		t.Error(err)
	}
}

// Pitfall S24: the keys of one script call are in one slot, and requests over several slots are charged whole or not at all.
func TestS24Cluster(t *testing.T) {
	cluster := testengine.RedisCluster(t)
	s := openURL(t, cluster.URL(), redis.Options{})
	allOrNothing(t, s, "one")
	allOrNothing(t, s, "one", "two", "three", "four")
	trusting := openURL(t, cluster.URL(), redis.Options{TrustClientTime: true})
	parts := []store.Part{part(t, trusting, "trusted", "5/1h", "a", 3), part(t, trusting, "trusted", "fixed-window 3/1h", "b", 2), part(t, trusting, "trusted", "exponential 5/1h", "c", 1)}
	for i, remaining := range []int64{2, 2} {
		verdicts, err := trusting.TakeAll(t.Context(), parts, int64(time.Hour), nil)
		if err != nil || verdicts[0].Remaining != remaining || verdicts[1].Remaining != 1 || (verdicts[0].Granted < 0) != (i == 1) {
			t.Errorf("request %d: %+v, %v", i, verdicts, err)
		}
	}
	reservedTogether(t, s)
	inTwoOrders(t, s)
	manyKeys(t, s)
	rightsInCluster(t, cluster)
}

// reservedTogether reserves under keys of several slots, and under several limits of one key: all or none, also where the limits have changed.
func reservedTogether(t *testing.T, s *redis.Store) {
	t.Helper()
	var parts []store.Part
	for i, key := range []string{"one", "two", "three", "one"} {
		before, after := []string{"30/1000h", "sliding-log 9/1000h"}[i%2], []string{"20/1000h", "sliding-log 7/1000h"}[i%2]
		name := fmt.Sprint("reserved", i)
		b := named(t, s, name, before, after)
		take(t, b[0], key, 2)
		parts = append(parts, store.Part{
			Store: s, Binding: b[1], Limit: algorithm.MustParseLimit(after), Name: name, Key: key, Cost: 2, ID: int64(i + 1), Life: int64(time.Hour),
		})
	}
	for round, want := range []int64{2, 2, 0, 0} { // of the logs 5 are left
		for i := range parts {
			parts[i].ID += 10
		}
		verdicts := takeAll(t, s, parts...)
		for i, v := range verdicts {
			granted := want
			if want == 0 && i%2 == 1 {
				granted = -1
			}
			left := parts[i].Limit.Capacity() - 2 - 2*int64(min(round+1, 2))
			if v.Granted != granted || v.Remaining != left {
				t.Errorf("reservation %d, part %d: %+v, want %d granted, %d left", round, i, v, granted, left)
			}
		}
	}
	for i := range parts { // the first two were granted, and can be settled
		op := algorithm.Op{Kind: algorithm.Commit, ID: parts[i].ID - 20, Cost: 1}
		if v := do(t, parts[i].Binding, parts[i].Key, op); v.Granted != 1 {
			t.Errorf("part %d is settled: %+v", i, v)
		}
		op.ID = parts[i].ID
		if v := do(t, parts[i].Binding, parts[i].Key, op); v.Granted != -1 {
			t.Errorf("part %d, which was denied, is settled: %+v", i, v)
		}
	}
}

// rightsInCluster has a user with the rights that docs/redis.md lists for a cluster.
func rightsInCluster(t *testing.T, cluster *testengine.Cluster) {
	t.Helper()
	for _, node := range cluster.Nodes {
		ask(t, raw(t, node.Addr()), strings.Fields("ACL SETUSER weir on >secret "+rights+" +cluster|slots +cluster|shards +asking")...)
	}
	s := openURL(t, "redis+cluster://weir:secret@"+strings.Join(cluster.Addrs(), ","), redis.Options{})
	takeAll(t, s, part(t, s, "", "1/1h", "a", 1), part(t, s, "", "hybrid 1/1h", "b", 1), part(t, s, "", "1/1h", "c", 1))
	whileSlotMoves(t, s, cluster)
	docs, err := os.ReadFile("../../docs/redis.md")
	if want := "`+cluster|slots +cluster|shards +asking`"; err != nil || !strings.Contains(string(docs), want) {
		t.Errorf("docs/redis.md does not show the rights %q, %v", want, err)
	}
}

// whileSlotMoves takes from a slot that is on its way to another node, where the key is new: one limit is decided there. Two limits of
// one key of which only one has moved are an error, and not charged.
func whileSlotMoves(t *testing.T, s *redis.Store, cluster *testengine.Cluster) {
	t.Helper()
	var from, to rueidis.Client
	slot := number(t, raw(t, cluster.Nodes[0].Addr()), "CLUSTER", "KEYSLOT", "{moves}")
	for _, node := range cluster.Nodes[:3] { // the masters
		c := raw(t, node.Addr())
		if err := c.Do(t.Context(), c.B().Arbitrary("SET", "{moves}", "1").Build()).Error(); err == nil {
			from = c
			ask(t, c, "DEL", "{moves}")
		} else {
			to = c
		}
	}
	id := func(c rueidis.Client) string {
		text, _ := ask(t, c, "CLUSTER", "MYID").ToString()
		return text
	}
	a, b := part(t, s, "", "10/1h", "moves", 1), part(t, s, "", "11/1h", "moves", 1)
	take(t, a.Binding, "moves", 3)
	text := strconv.FormatInt(slot, 10)
	ask(t, to, "CLUSTER", "SETSLOT", text, "IMPORTING", id(from))
	ask(t, from, "CLUSTER", "SETSLOT", text, "MIGRATING", id(to))
	if v := take(t, b.Binding, "moves", 2); v.Remaining != 9 { // by way of ASK
		t.Errorf("while its slot moves: %+v", v)
	}
	if verdicts, err := s.TakeAll(t.Context(), []store.Part{a, b}, store.OwnClock, nil); !errors.Is(err, store.ErrNothingDone) {
		t.Errorf("keys on both nodes: %+v, %v", verdicts, err)
	}
	if v, w := take(t, a.Binding, "moves", 0), take(t, b.Binding, "moves", 0); v.Remaining != 7 || w.Remaining != 9 {
		t.Errorf("after an error: %+v, %+v", v, w)
	}
}

// inTwoOrders has clients that take from two slots in opposite orders: no more passes than the tighter limit says, and what the
// other lost comes back.
func inTwoOrders(t *testing.T, s *redis.Store) {
	t.Helper()
	var passed atomic.Int64
	var wg sync.WaitGroup
	for g := range 8 {
		a, b := part(t, s, "orders", "1000/1000h", "a", 1), part(t, s, "orders", "30/1000h", "b", 1)
		if g%2 == 0 {
			a, b = b, a
		}
		wg.Go(func() {
			for range 20 {
				verdicts := takeAll(t, s, a, b)
				if verdicts[0].Granted > 0 && verdicts[1].Granted > 0 {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	a, b := take(t, bind(t, s, "orders", "1000/1000h"), "a", 0), take(t, bind(t, s, "orders", "30/1000h"), "b", 0)
	if passed.Load() != 30 || a.Remaining != 970 || b.Remaining != 0 {
		t.Errorf("%d passed, %d and %d remain; want 30, 970, 0", passed.Load(), a.Remaining, b.Remaining)
	}
}

// manyKeys decides a batch, which is spread over all slots.
func manyKeys(t *testing.T, s *redis.Store) {
	t.Helper()
	b := bind(t, s, "batch", "3/1h")
	var requests []store.KeyCost
	for i := range 500 {
		requests = append(requests, store.KeyCost{Key: fmt.Sprint(i % 100), Cost: 1})
	}
	decisions, err := b.(store.Batcher).TakeMany(t.Context(), requests, store.OwnClock, nil)
	if err != nil || len(decisions) != len(requests) {
		t.Fatal(len(decisions), err)
	}
	for i, d := range decisions {
		if want := int64(max(0, 2-i/100)); d.Remaining != want || d.Allowed != (i < 300) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
}

func TestTakeMany(t *testing.T) {
	s := open(t, redis.Options{})
	manyKeys(t, s)
	b := bind(t, s, t.Name(), "sliding-log 5/1h").(store.Batcher)
	decisions, err := b.TakeMany(t.Context(), []store.KeyCost{{Key: "a", Cost: 6}, {Key: "a", Cost: 0}, {Key: "a", Cost: 5}, {Key: "a", Cost: 1}}, store.OwnClock, nil)
	if err != nil || len(decisions) != 4 || decisions[0].RetryAfter != algorithm.Never || decisions[1].Remaining != 5 ||
		!decisions[2].Allowed || decisions[3].Allowed || decisions[3].Limit != 5 {
		t.Errorf("%+v, %v", decisions, err)
	}
	if decisions, err = b.TakeMany(t.Context(), nil, store.OwnClock, decisions[:1]); len(decisions) != 1 || err != nil {
		t.Error(decisions, err)
	}
}

// until polls. Only the test binary has a deadline.
func until(t testing.TB, f func() error) {
	t.Helper()
	var last string
	for err := f(); err != nil; err = f() {
		if text := err.Error(); text != last {
			last = text
			t.Logf("not yet: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
