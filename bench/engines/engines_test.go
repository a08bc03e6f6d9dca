package engines

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/load"
)

// commands are the programs that an engine needs.
var commands = map[string][]string{
	redisEngine: {"redis-server", "taskset"}, memcachedEngine: {"memcached", "taskset"}, postgresEngine: {"postgres", "initdb", "taskset"},
}

func startEngine(t *testing.T, name string) *engine {
	t.Helper()
	for _, c := range commands[name] {
		if _, err := exec.LookPath(c); err != nil {
			if os.Getenv("WEIR_ENGINES") == "require" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	e, err := start(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.stop)
	return e
}

func open(t *testing.T, c contender, e *engine, b budget) limiter {
	t.Helper()
	l, end, err := c.open(context.Background(), c.url(e.address), b)
	if end != nil {
		t.Cleanup(end)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func everyEngine(t *testing.T, f func(t *testing.T, e *engine, c contender)) {
	for _, name := range []string{redisEngine, postgresEngine, memcachedEngine} {
		t.Run(name, func(t *testing.T) {
			e := startEngine(t, name)
			for _, c := range contenders() {
				if c.engine == name && c.decides {
					t.Run(c.name, func(t *testing.T) { f(t, e, c) })
				}
			}
		})
	}
}

func TestEveryContenderAdmitsItsBudgetAndDeniesTheRest(t *testing.T) {
	everyEngine(t, func(t *testing.T, e *engine, c contender) {
		l := open(t, c, e, budget{5, 1000 * time.Hour})
		for _, key := range []string{c.name + " one", c.name + " two"} {
			n := 0
			for range 20 {
				ok, err := l.Allow(context.Background(), key)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					n++
				}
			}
			if n != 5 {
				t.Errorf("key %q: admitted %d of 20, want 5", key, n)
			}
		}
	})
}

func TestContendersAdmitExactlyTheirBudgetToManyGoroutines(t *testing.T) {
	everyEngine(t, func(t *testing.T, e *engine, c contender) {
		l := open(t, c, e, budget{30, 1000 * time.Hour})
		var admitted, failed atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for range 10 {
					ok, err := l.Allow(context.Background(), c.name+" many")
					if ok {
						admitted.Add(1)
					}
					if err != nil {
						failed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		peer := strings.HasPrefix(c.name, "throttled")
		if n := admitted.Load(); n > 30 || n < 30 && !peer {
			t.Errorf("admitted %d, want 30", n)
		}
		if n := failed.Load(); n > 0 && !peer { // which gives up after ten lost races
			t.Errorf("%d of 160 ended in an error", n)
		}
	})
}

func TestWorkloadsAdmitAllOrNoneAtEveryContender(t *testing.T) {
	const keys = 100
	requests := 3 * keys
	if testing.Short() {
		requests = keys + 20
	}
	everyEngine(t, func(t *testing.T, e *engine, c contender) {
		for _, w := range workloads() {
			l, s := open(t, c, e, w.budget), w.stream(keys)
			for i := range requests {
				ok, err := l.Allow(context.Background(), s.Key(i%s.Len()))
				if err != nil {
					t.Fatal(err)
				}
				if w.denied && i == 0 {
					continue // contenders of one space have one budget
				}
				if want := !w.denied; ok != want {
					t.Fatalf("%s, request %d: admitted %v, want %v", w.Name, i, ok, want)
				}
			}
		}
	})
}

func TestWorkloadsHaveNoKeyInCommon(t *testing.T) {
	const keys = 50
	seen := map[string]string{}
	for _, w := range workloads() {
		s := w.stream(keys)
		for i := range min(s.Len(), 10_000) {
			if other, ok := seen[s.Key(i)]; ok && other != w.Name {
				t.Fatalf("%q is a key of %q and of %q", s.Key(i), w.Name, other)
			}
			seen[s.Key(i)] = w.Name
		}
	}
	if len(seen) != keys+2 {
		t.Errorf("%d keys, want %d", len(seen), keys+2)
	}
}

// nap admits every other request and takes a while.
type nap struct{ n atomic.Int64 }

func (s *nap) Allow(context.Context, string) (bool, error) {
	switch s.n.Add(1) % 4 {
	case 0:
		return false, io.ErrUnexpectedEOF
	case 1:
		return false, nil
	}
	return true, nil
}

func TestDriveCountsWhatWasAdmittedAndWhatFailed(t *testing.T) {
	l := &nap{}
	r := slot{Goroutines: 3}.drive(context.Background(), l, load.Each(10), 5*time.Millisecond)
	if n := l.n.Load(); r.Requests != n || r.Failed != n/4 || r.Admitted != n-(n+3)/4-n/4 {
		t.Errorf("got %+v of %d requests", r, n)
	}
	if r.Problem != io.ErrUnexpectedEOF.Error() || r.Seconds <= 0 || r.Median > r.Late {
		t.Errorf("got %+v", r)
	}
}

func TestQuantile(t *testing.T) {
	var d []time.Duration
	for i := range 200 {
		d = append(d, time.Duration(i)*time.Microsecond)
	}
	if m, l := quantile(d, 0.5), quantile(d, 0.99); m != 100 || l != 198 {
		t.Errorf("got %v and %v, want 100 and 198", m, l)
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("of none: %v, want 0", got)
	}
}

func TestInfoIsReadOrRefused(t *testing.T) {
	first, err := readInfo("# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:2.25\r\ncmdstat_get:calls=3,usec=1\r\ncmdstat_client|setinfo:calls=2,usec=1\r\n")
	if err != nil || first.seconds != 3.75 || first.calls["get"] != 3 || first.calls["client|setinfo"] != 2 {
		t.Errorf("got %+v, %v", first, err)
	}
	second := view{calls: map[string]int64{"get": 10, "set": 1, "client|setinfo": 2, "info": 9}}
	d := second.less(first)
	if len(d) != 2 || d["get"] != 7 || d["set"] != 1 {
		t.Errorf("difference is %v", d)
	}
	for _, bad := range []string{"", "used_cpu_sys:x", "used_cpu_sys:1\ncmdstat_get:calls=many"} {
		if v, err := readInfo(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, v)
		}
	}
}

func TestWhatPeersSendIsToldFromWhatScriptsCall(t *testing.T) {
	throttled, err := harness.Find("contender", "throttled", contenders())
	if err != nil {
		t.Fatal(err)
	}
	// Two decisions: TIME and GET each, then SETNX and EXPIRE for one, and a script that gets and sets for the other.
	calls := map[string]int64{"time": 2, "get": 3, "setnx": 1, "expire": 1, "eval": 1, "setex": 1}
	if n := throttled.sent(calls); n != 7 {
		t.Errorf("sent %v, want 7", n)
	}
	if n := carriedOut(calls); n != 9 {
		t.Errorf("carried out %v, want 9", n)
	}
}

func TestFlagsNameWhatTheyAccept(t *testing.T) {
	for flags, want := range map[string]string{
		"-time 1ms": "-time is 1ms", "-stores redis,mysql": `"mysql"`, "-only valkey": "redis_rate", "-workloads cold": "hot; many; denied",
		`-slot {"Contender":"valkey"}`: "redis_rate",
	} {
		if err := harness.Main(t.Context(), Command, strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
}

func TestStartSaysWhyAnEngineDidNotComeUp(t *testing.T) {
	if _, err := start(context.Background(), "etcd"); err == nil || !strings.Contains(err.Error(), `"etcd"`) {
		t.Errorf("error is %v", err)
	}
}

func TestStopEndsTheEngineAndItsData(t *testing.T) {
	e := startEngine(t, redisEngine)
	e.stop()
	if _, err := os.Stat(e.dir); !os.IsNotExist(err) {
		t.Errorf("folder %s is still there: %v", e.dir, err)
	}
	e.stop() // again is harmless, as at the test's end
}

// found is a plan of one workload with figures of two rounds, of which the second ran half as fast.
func found() *plan {
	p := &plan{Settings: harness.Settings{Rounds: 2, Goroutines: []int{16}}, chosen: workloads(), results: map[cell][]result{}}
	add := func(name string, k kind, sends map[string]float64, r result) {
		p.contenders = append(p.contenders, contender{name: name, kind: k, engine: redisEngine, sends: sends})
		slow := r
		slow.Seconds, slow.Server = 2*r.Seconds, 2*r.Server
		p.results[cell{name, "many", 16}] = []result{r, slow}
	}
	add(weirRedis, ours, script, result{Requests: 3000, Admitted: 3000, Seconds: 1, Server: 0.03, Calls: map[string]int64{"evalsha": 3001, "get": 2999}})
	add("redis_rate", documented, script, result{Requests: 1000, Admitted: 1000, Seconds: 1, Server: 0.02})
	add("redis_rate, auto-pipelined", tuned, script, result{Requests: 2000, Admitted: 2000, Seconds: 1, Server: 0.04})
	add("throttled", documented, swaps, result{Requests: 1000, Failed: 500, Admitted: 500, Seconds: 1, Problem: "gave up"})
	return p
}

func TestTablesShowMediansRatiosAndRemarks(t *testing.T) {
	p := found()
	var b strings.Builder
	if err := p.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| many keys, 16 | 2250 | redis_rate | 750 | 3.00 | 2.00 | redis_rate, auto-pipelined | 1500 | 1.50 | 2.00 |",
		"| weir | 1.000 · 2.000 |",
		"- throttled, many keys, 16 goroutines: 1000 of 2000 requests (50.0 %) ended in an error, and are not counted as decisions: gave up",
		"- weir, many keys, 16 goroutines: sent 6002 EVALSHA for 6000 requests, should have been as many",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if at, ok := p.best(workloads()[1], 16, floor); ok {
		t.Errorf("%v is the best of none", at)
	}
}
