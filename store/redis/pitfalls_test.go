package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

func take(t testing.TB, b store.Binding, key string, cost int64) algorithm.Verdict {
	t.Helper()
	return do(t, b, key, algorithm.Op{Cost: cost})
}

func do(t testing.TB, b store.Binding, key string, op algorithm.Op) algorithm.Verdict {
	t.Helper()
	v, err := b.Do(context.Background(), key, op, store.OwnClock)
	if err != nil {
		t.Fatalf("%q %+v: %v", key, op, err)
	}
	return v
}

// Pitfall S1: a connection that is lost at any time leaves no key without an expiry. The engine's connections are killed under
// traffic, and every key that there is has a life.
func TestS1KilledConnections(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{})
	c := raw(t, server.Addr())
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for g := range 4 {
		b := bind(t, s, t.Name(), limits[g*7])
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					b.Do(context.Background(), fmt.Sprint(g, i%1000), algorithm.Op{Cost: 1}, store.OwnClock)
				}
			}
		})
	}
	for made, last := 0, 0; made < 2000; made = calls(t, c, "set") {
		if made-last >= 20 { // a server that kills each connection at once would open the circuit
			last = made
			ask(t, c, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		}
	}
	close(stop)
	wg.Wait()
	lives := census(t, c, "*")
	if len(lives) == 0 {
		t.Error("no keys")
	}
	for name, life := range lives {
		if life == -1 {
			t.Errorf("%s lives for ever", name)
		}
	}
}

// Pitfall S2: of two that create a key, the one that is denied does not shorten its life.
func TestS2RacingCreators(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	began := serverTime(t, c)
	for i := range 20 {
		b := bind(t, s, t.Name(), "1/1s burst=100")
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { take(t, b, fmt.Sprint(i), 100) })
		}
		wg.Wait()
	}
	lives := census(t, c, "*"+t.Name()+"*")
	passed := (serverTime(t, c)-began)/1000 + 1
	for name, life := range lives {
		if life < 100_000-passed || life > 100_001 {
			t.Errorf("%s lives for %d ms, want 100 s, less up to %d ms that passed", name, life, passed)
		}
	}
}

// Pitfall S4: what is denied costs nothing.
func TestS4DenialIsFree(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, text := range []string{
		"10/1h", "gcra 10/1h", "leaky-bucket 10/1h", "cooldown 10/1h", "leaky-queue 1/1h queue=9", "refill-bucket 10/1h", "fixed-window 10/10000h",
		"quota-reset 10/1h", "sliding-log 10/1h", "sliding-window 10/10000h", "sliding-buckets 10/1h", "hybrid 10/1h", "exponential 10/1000h",
	} {
		b := bind(t, s, t.Name(), text)
		if v := take(t, b, "key", 8); v.Granted != 8 || v.Remaining != 2 {
			t.Errorf("%s: 8 of 10: %+v", text, v)
		}
		name := ""
		for found := range census(t, c, "*:"+limiter(t.Name(), text)) {
			name = found
		}
		dump, expires := ask(t, c, "DUMP", name), number(t, c, "PEXPIRETIME", name)
		for range 3 {
			if v := take(t, b, "key", 5); v.Granted != -1 || v.Remaining != 2 || v.Wait <= 0 {
				t.Errorf("%s: 5 of 2: %+v", text, v)
			}
			take(t, b, "key", 0)
		}
		same, _ := ask(t, c, "DUMP", name).ToString()
		if before, _ := dump.ToString(); same != before || number(t, c, "PEXPIRETIME", name) != expires {
			t.Errorf("%s: a denial wrote", text)
		}
		if v := take(t, b, "key", 2); v.Granted != 2 || v.Remaining != 0 {
			t.Errorf("%s: 2 of 2: %+v", text, v)
		}
	}
}

// Pitfall S7: every key has a life, and no longer than its state differs from a fresh one: two windows at most. The life
// of an exponential's is until its reset, to within two periods.
func TestS7LifeOfKeys(t *testing.T) {
	c := raw(t, server(t).Addr())
	for i, text := range limits {
		prefix := fmt.Sprintf("s7-%d", i)
		s := openURL(t, server(t).URL(), redis.Options{Prefix: prefix})
		b := bind(t, s, t.Name(), text)
		w := &walk{Rand: rand.New(rand.NewPCG(7, uint64(i))), limit: algorithm.MustParseLimit(text), now: time.Now().UnixMicro()}
		longest := map[string]time.Duration{}
		for range 200 {
			w.now = time.Now().UnixMicro()
			op := w.op()
			op.End *= 1000
			key := fmt.Sprint(w.IntN(20))
			v, ns, err := b.(store.Stamper).DoStamped(t.Context(), key, op, store.OwnClock)
			if err != nil {
				t.Fatal(err)
			}
			w.took(v, ns/1000)
			longest[key] = v.Reset
		}
		for name, life := range census(t, c, prefix+":*") {
			key := name[strings.Index(name, "{")+1 : strings.Index(name, "}")]
			most := longest[key]
			if a := w.limit.Algorithm; a == algorithm.Exponential || a == algorithm.SlidingBuckets { // an emptied bucket is kept too
				most += 2 * w.limit.Period
			}
			if span := max(w.limit.Period, most); life == -1 || life > 2*span.Milliseconds()+1000 || life > most.Milliseconds()+1002 {
				t.Errorf("%s: %s lives for %d ms; it is fresh in %v", text, name, life, longest[key])
			}
		}
	}
}

// Pitfall S8: a refund gives back at most what was used, keeps the window's start, and is kept.
func TestS8Refund(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, text := range []string{"10/10h", "quota-reset 10/10h", "sliding-log 10/10h", "sliding-buckets 10/10h", "hybrid 10/10h", "refill-bucket 10/10h"} {
		b := bind(t, s, t.Name(), text)
		first := take(t, b, "key", 5)
		v := do(t, b, "key", algorithm.Op{Kind: algorithm.Refund, Cost: 4})
		if v.Remaining != 9 || v.Reset > first.Reset || v.Reset == 0 {
			t.Errorf("%s: 5 taken, 4 given back: %+v after %+v", text, v, first)
		}
		for _, life := range census(t, c, "*:"+limiter(t.Name(), text)) {
			if life <= 0 {
				t.Errorf("%s: it lives for %d", text, life)
			}
		}
		for range 2 {
			if v = do(t, b, "key", algorithm.Op{Kind: algorithm.Refund, Cost: 5}); v.Remaining != 10 {
				t.Errorf("%s: given back more than was used: %+v", text, v)
			}
		}
		if v := take(t, b, "key", 11); v.Granted != -1 || v.Wait != algorithm.Never {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// Pitfall S11: a key is no pattern. Pitfall S12: different tuples have different keys, whatever is in them.
func TestS11S12OddKeys(t *testing.T) {
	s := open(t, redis.Options{})
	b := bind(t, s, t.Name(), "2/1h")
	keys := []string{
		"a", "ab", "a?[b", "*", "a*", "", "\x00", "\x00\x00", "{", "}", "{}", "{a}", "a:b", "a|b", "a b", "a\nb", "a%20b", "%", "#", "josé", "jose\u0301",
		"\xff\xfe", "::1 /", strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + "1",
	}
	for _, key := range keys {
		if v := take(t, b, key, 1); v.Remaining != 1 {
			t.Errorf("%.20q: %+v", key, v)
		}
	}
	for _, key := range []string{"*", "a?[b", "a*"} {
		do(t, b, key, algorithm.Op{Kind: algorithm.Reset})
	}
	for _, key := range keys {
		want := int64(1)
		if key == "*" || key == "a?[b" || key == "a*" {
			want = 2
		}
		if v := take(t, b, key, 0); v.Remaining != want {
			t.Errorf("%.20q after the resets: %+v", key, v)
		}
	}
	other := bind(t, s, t.Name()+":b", "2/1h")
	take(t, bind(t, s, t.Name(), "2/1h"), "b:c", 1)
	if v := take(t, other, "c", 0); v.Remaining != 2 {
		t.Errorf("two tuples share a state: %+v", v)
	}
}

// Pitfall S17: a key lives until its debt is paid, counted from the last take.
func TestS17LifeFromTheLastDebt(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	c := raw(t, server(t).Addr())
	b := bind(t, s, t.Name(), "1/100s burst=10")
	second := int64(time.Second)
	if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 10}, 0); err != nil {
		t.Fatal(err)
	}
	if v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, 11*second); err != nil || v.Granted != -1 {
		t.Errorf("after 11 s: %+v, %v", v, err)
	}
	own := bind(t, open(t, redis.Options{}), t.Name()+"own", "1/100s burst=10")
	began := serverTime(t, c)
	for i := range 10 {
		take(t, own, "key", 1)
		for name, life := range census(t, c, "*"+t.Name()+"own*") {
			passed := (serverTime(t, c)-began)/1000 + 1
			if want := int64(i+1) * 100_000; life > want+1 || life < want-passed {
				t.Errorf("%s lives for %d ms after %d takes, want %d", name, life, i+1, want)
			}
		}
	}
}

// calls returns how often a command was called, also by scripts.
func calls(t testing.TB, c rueidis.Client, command string) (n int) {
	t.Helper()
	text, err := ask(t, c, "INFO", "commandstats").ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			fmt.Sscanf(rest, "%d", &n)
		}
	}
	return n
}

// Pitfall S22: 400 at one time for one key are one command each, and are not tried again.
func TestS22HotKey(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{})
	c := raw(t, server.Addr())
	b := bind(t, s, t.Name(), "100/1h")
	ask(t, c, "CONFIG", "RESETSTAT")
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 400 {
		wg.Go(func() {
			v := take(t, b, "key", 1)
			mu.Lock()
			defer mu.Unlock()
			granted += max(0, int(v.Granted))
		})
	}
	wg.Wait()
	if granted != 100 {
		t.Errorf("%d of 400 pass, want 100", granted)
	}
	got := map[string]int{}
	for _, command := range []string{"evalsha", "eval", "time", "get", "set"} {
		got[command] = calls(t, c, command)
	}
	if want := map[string]int{"evalsha": 400, "eval": 0, "time": 400, "get": 400, "set": 100}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("commands: %v, want %v", got, want)
	}
}

// Pitfall S25: the script calls nothing that only some servers know, and when the server has forgotten it the same call sends it again.
func TestS25ForgottenScript(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{})
	c := raw(t, server.Addr())
	b := bind(t, s, t.Name(), "10/1h")
	opened := s.Counts().Reloads
	for i, forget := range [][]string{{"SCRIPT", "FLUSH"}, {"SCRIPT", "FLUSH", "ASYNC"}, {"FLUSHALL"}} {
		ask(t, c, forget...)
		remaining := int64(9 - i)
		if forget[0] == "FLUSHALL" { // scripts stay
			remaining = 9
		}
		if v := take(t, b, "key", 1); v.Remaining != remaining {
			t.Errorf("after %q: %+v", forget, v)
		}
	}
	if got := s.Counts().Reloads - opened; got != 2 {
		t.Errorf("%d reloads, want 2", got)
	}
	many := b.(store.Batcher)
	ask(t, c, "SCRIPT", "FLUSH")
	decisions, err := many.TakeMany(t.Context(), []store.KeyCost{{Key: "a", Cost: 1}, {Key: "a", Cost: 1}, {Key: "b", Cost: 1}}, store.OwnClock, nil)
	if err != nil || len(decisions) != 3 || decisions[1].Remaining != 8 || decisions[2].Remaining != 9 {
		t.Errorf("%+v, %v", decisions, err)
	}
	files, err := filepath.Glob("script/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), "replicate_commands") {
			t.Errorf("%s calls replicate_commands, %v", name, err)
		}
	}
}

// Pitfall S27: a window that has passed leaves nothing behind for a peek.
func TestS27StalePeek(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	for _, text := range limits {
		limit := algorithm.MustParseLimit(text)
		if limit.Strict {
			continue
		}
		b := bind(t, s, t.Name(), text)
		now := int64(1_700_000_000_000_000_000)
		v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: limit.Capacity()}, now)
		if err != nil || v.Granted < 0 {
			t.Fatalf("%s: %+v, %v", text, v, err)
		}
		v, err = b.Do(t.Context(), "key", algorithm.Op{}, now+int64(v.Reset))
		if err != nil || v.Remaining != limit.Capacity() || v.Reset != 0 {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
}
