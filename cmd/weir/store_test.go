package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/testengine"
)

// verdict drops the waits, which depend on when a request comes, from replies.
func verdict(reply string) string {
	return regexp.MustCompile(`\[([01] \d+ \d+)( -?\d+)+\]`).ReplaceAllString(reply, "[$1]")
}

// Two processes over one engine are as one.
func TestServersShareAnEngine(t *testing.T) {
	for kind, start := range backends {
		t.Run(kind, func(t *testing.T) {
			url := withTimeout(kind, start(t).url)
			a, b := startDaemon(t, url), startDaemon(t, url)
			both := []*daemon{a, b}
			for i, s := range []struct{ command, want string }{
				{`WEIR.TAKE user:42 3/1h`, "[1 3 2]"},
				{`WEIR.TAKE user:42 "3/60m"`, "[1 3 1]"},
				{`WEIR.PEEK user:42 3/1h`, "[1 3 1]"},
				{`WEIR.TAKE user:42 3/1h COST 2`, "[0 3 1]"},
				{`WEIR.TAKEUPTO user:42 3/1h COST 2`, "[1 3 0]"},
				{`WEIR.REFUND user:42 3/1h COST 2`, "[1 3 2]"},
				{`WEIR.TAKE user:42 3/1h NAME login`, "[1 3 2]"},
				{`WEIR.TAKE user:42 3/1h NAME login`, "[1 3 1]"},
				{`WEIR.RESET user:42 3/1h`, "OK"},
				{`WEIR.PEEK user:42 3/1h`, "[1 3 3]"},
				{`CL.THROTTLE user:42 2 1 3600`, "[0 3 2]"},
				{`THROTTLE user:42 3 1 3600`, "[1 3 1]"},
				{`CL.THROTTLE user:42 2 1 3600 2`, "[1 3 1]"},
				{`RL.REDUCE user:42 5 3600 TAKE 2`, "5"},
				{`RL.REDUCE user:42 5 3600 TAKE 4`, "3"},
				{`RL.GET user:42 5 3600`, "0"},
				{`WEIR.TAKE user:42 "sliding-log 3/1h"`, "[1 3 2]"},
				{`WEIR.TAKE user:42 "sliding-log 3/1h" COST 3`, "[0 3 2]"},
				{`WEIR.TAKEALL user:43 2/1h AND all 3/1h COST 2`, "[[1 2 1] [1 2 1] [1 3 1]]"},
				{`WEIR.TAKEALL user:43 2/1h AND all 3/1h COST 2`, "[[0 2 1] [1 2 1] [0 3 1]]"},
				{`WEIR.PEEK user:43 2/1h`, "[1 2 1]"},
			} {
				if got := verdict(both[i%2].ask(t, s.command)[0]); got != s.want {
					t.Errorf("step %d, %s: %s, want %s", i, s.command, got, s.want)
				}
			}
			_, got := b.post(t, "/v1/take", `{"key":"user:42","limit":"3/1h","cost":3}`)
			if !strings.HasPrefix(got, `{"allowed":true,"limit":3,"remaining":0,`) {
				t.Errorf("over HTTP: %s", got)
			}
			_, got = a.post(t, "/v1/take-up-to", `{"key":"user:42","limit":"3/1h","name":"login","cost":3}`)
			if !strings.HasPrefix(got, `{"allowed":true,"granted":1,"limit":3,"remaining":0,`) {
				t.Errorf("over HTTP, under a name: %s", got)
			}
			pipelined := a.ask(t, `MULTI`, `WEIR.TAKE p 2/1h`, `CL.THROTTLE p 0 1 3600`, `WEIR.TAKE p 2/1h`, `EXEC`)
			if got := verdict(pipelined[4]); got != "[[1 2 1] [0 1 0] [1 2 0]]" {
				t.Errorf("a transaction: %s", got)
			}
			if got := verdict(strings.Join(b.ask(t, `WEIR.TAKE p 2/1h`, `PING`, `WEIR.TAKE p 3/1h`, `WEIR.TAKE p bad`), " ")); got !=
				`[0 2 0] PONG [1 3 2] ERR limit has text "bad"; accepted: [algorithm] count/period, such as 100/1m, gcra 10/1s burst=20 or 500/day, or concurrent count lease=duration` {
				t.Errorf("a pipeline: %s", got)
			}
			if got := a.ask(t, `WEIR.TAKE k 1/1s AT 1`)[0]; !strings.HasPrefix(got, "ERR AT is refused") {
				t.Errorf("a time that is not trusted: %s", got)
			}
		})
	}
}

// timed are commands that say their time, T plus so many microseconds. Their intervals are whole microseconds.
func timed() (commands []string) {
	const start = 1_700_000_000_000_000
	at := func(us int) string { return fmt.Sprint(start + us) }
	for i, limit := range []string{
		"4/1s", "gcra 4/1s burst=2", "leaky-bucket 4/1s", "leaky-queue 4/1s queue=2", "cooldown 4/1s", "min-interval 4/1s",
		"refill-bucket 4/1s burst=8", "fixed-window 4/1s", "quota-reset 4/1s", "sliding-log 4/1s", "sliding-window 4/1s",
		"sliding-buckets 4/1s cells=10", "hybrid 4/1s", "exponential 4/1s",
	} {
		key := fmt.Sprintf(`key:%d "%s"`, i, limit)
		for _, us := range []int{0, 1, 100_000, 249_999, 250_000, 999_999, 1_000_000, 1_500_001, 10_000_000} {
			commands = append(commands,
				"WEIR.TAKE "+key+" AT "+at(us), "WEIR.TAKE "+key+" COST 2 AT "+at(us), "WEIR.PEEK "+key+" AT "+at(us),
				"WEIR.TAKE "+key+" COST 9 AT "+at(us), "WEIR.REFUND "+key+" AT "+at(us),
			)
		}
		commands = append(commands,
			"WEIR.TAKEUPTO "+key+" COST 3 TIME AT "+at(10_000_000), "WEIR.CANCEL "+key+" END "+at(10_250_000)+" AT "+at(10_000_000),
			"WEIR.TAKE "+key+" TIME AT "+at(11_000_000), "WEIR.TAKE "+key+" NAME x AT "+at(1), "WEIR.PEEK "+key+" AT "+at(12_000_000),
			"WEIR.RESET "+key+" TIME AT "+at(12_000_000), "WEIR.TAKE "+key+" AT "+at(12_000_001),
			"WEIR.TAKEALL "+key+" AND one 2/1s COST 2 AT "+at(12_000_001+i*1_000_000),
		)
	}
	return append(commands, "RL.REDUCE b 10 60 REFILL 2 TAKE 7 AT 1700000000", "RL.GET b 10 60 REFILL 2 AT 1700000061",
		"RL.PREDUCE b 10 60 TAKE 11 AT 1700000000000", "RL.PGET b 10 60 AT 1700000000059", `WEIR.TAKE d "gcra 4/1s" NAME n DEBT AT `+at(0),
		`WEIR.TAKE d "gcra 8/1s" NAME n DEBT NS TIME AT `+at(0)+"000")
}

// A time that is told gives the same answers on every engine as in memory, to the microsecond.
func TestToldTimesGiveWhatMemoryGives(t *testing.T) {
	commands := timed()
	want := startDaemon(t, "memory", "--trust-client-time").ask(t, commands...)
	for i, reply := range want {
		if strings.HasPrefix(reply, "ERR") {
			t.Fatalf("%s: %s", commands[i], reply)
		}
	}
	for kind, start := range backends {
		t.Run(kind, func(t *testing.T) {
			d := startDaemon(t, withTimeout(kind, start(t).url), "--trust-client-time")
			for i, got := range d.ask(t, commands...) {
				if got != want[i] {
					t.Errorf("%s: %s, in memory %s", commands[i], got, want[i])
				}
			}
		})
	}
}

// When the engine is gone there are errors, and when it is back there are decisions.
func TestEngineGoesAndComesBack(t *testing.T) {
	for kind, start := range backends {
		t.Run(kind, func(t *testing.T) {
			e := start(t)
			d := startDaemon(t, e.url)
			if got := verdict(d.ask(t, "WEIR.TAKE k 5/1h")[0]); got != "[1 5 4]" {
				t.Fatalf("before: %s", got)
			}
			e.kill(t)
			for _, got := range d.ask(t, "WEIR.TAKE k 5/1h", "CL.THROTTLE k 1 1 1", "RL.GET k 1 1", "WEIR.TAKEALL k 5/1h AND l 5/1h") {
				if got != "ERR no decision could be made, try again" {
					t.Errorf("without the engine: %s", got)
				}
			}
			if status, body := d.post(t, "/v1/take", `{"key":"k","limit":"5/1h"}`); status != 503 || strings.Contains(body, "127.0.0.1") {
				t.Errorf("without the engine, over HTTP: %d %s", status, body)
			}
			if status, _ := d.post(t, "/healthz", ""); status != 200 {
				t.Errorf("without the engine /healthz answers %d", status)
			}
			if status, body := d.post(t, "/readyz", ""); status != 503 || !strings.Contains(body, " has not served since ") {
				t.Errorf("without the engine /readyz answers %d %s", status, body)
			}
			if _, metrics := d.post(t, "/metrics", ""); !regexp.MustCompile(`(?m)^weir_store_failures_total [1-9]`).MatchString(metrics) ||
				!strings.Contains(metrics, `weir_undecided_total{protocol="resp"} 4`) {
				t.Error("the metrics do not count the failures")
			}
			if log := d.log.String(); !strings.Contains(log, "no decision could be made") {
				t.Errorf("the log does not tell of the failures: %s", log)
			}
			e.start(t)
			for strings.HasPrefix(d.ask(t, "WEIR.TAKE k 5/1h")[0], "ERR") {
				time.Sleep(time.Millisecond)
			}
			if status, _ := d.post(t, "/readyz", ""); status != 200 {
				t.Errorf("/readyz answers %d when the engine is back", status)
			}
		})
	}
}

// Three servers in a chain: what the last of them decides is what the first answers.
func TestServersInAChain(t *testing.T) {
	first := startDaemon(t, withTimeout("redis", testengine.Redis(t).URL()))
	second := startDaemon(t, withTimeout("weir", "weir://"+first.resp))
	third := startDaemon(t, withTimeout("weir", "weir://"+second.resp))
	for i, s := range []struct{ command, want string }{
		{`WEIR.TAKE k 4/1h`, "[1 4 3]"}, {`WEIR.TAKE k 4/1h NAME n`, "[1 4 3]"}, {`CL.THROTTLE k 3 1 3600`, "[0 4 3]"},
		{`RL.REDUCE k 4 3600`, "4"}, {`WEIR.TAKEALL k 4/1h AND k 4/1h NAME n`, "[[1 4 2] [1 4 2] [1 4 2]]"},
		{`WEIR.TAKE k 4/1h`, "[1 4 1]"}, {`CL.THROTTLE k 3 1 3600`, "[0 4 2]"}, {`RL.REDUCE k 4 3600`, "3"},
		{`WEIR.TAKE k 4/1h`, "[1 4 0]"}, {`CL.THROTTLE k 3 1 3600`, "[0 4 1]"}, {`RL.REDUCE k 4 3600`, "2"},
	} {
		if got := verdict([]*daemon{third, second, first}[i%3].ask(t, s.command)[0]); got != s.want {
			t.Errorf("step %d, %s: %s, want %s", i, s.command, got, s.want)
		}
	}
	if got := third.ask(t, `WEIR.TAKE k "9007199254740993/8760h"`)[0]; !strings.HasPrefix(got, "ERR limit has ") {
		t.Errorf("a limit that Redis can't keep: %s", got)
	}
}

func TestServeOverManyRedisServers(t *testing.T) {
	for kind, url := range map[string]func() string{
		"cluster":  func() string { return testengine.RedisCluster(t).URL() },
		"sentinel": func() string { return testengine.RedisSentinel(t).URL() },
	} {
		d := startDaemon(t, withTimeout("redis", url()))
		var commands, want []string
		for i := range 50 { // keys of many slots
			commands = append(commands, fmt.Sprintf("WEIR.TAKE k%d 2/1h", i), fmt.Sprintf("CL.THROTTLE k%d 1 1 3600", i))
			want = append(want, "[1 2 1]", "[0 2 1]")
		}
		commands, want = append(commands, "WEIR.TAKEALL k1 2/1h AND k2 2/1h AND k1 1/1h"), append(want, "[[1 2 0] [1 2 0] [1 2 0] [1 1 0]]")
		if got := verdict(strings.Join(d.ask(t, commands...), "\n")); got != strings.Join(want, "\n") {
			t.Errorf("over a %s: %s", kind, got)
		}
	}
}

func TestStoresRefused(t *testing.T) {
	for args, want := range map[string][]string{
		"--store redis://user:secret@127.0.0.1:1":                       {"--store redis://127.0.0.1:1: ", "nothing listens at 127.0.0.1:1"},
		"--store memcached://127.0.0.1:1":                               {"--store memcached://127.0.0.1:1: "},
		"--store postgres://user:secret@127.0.0.1:1/db?password=secret": {"--store postgres://127.0.0.1:1/db: "},
		"--store weir://127.0.0.1:1":                                    {"--store weir://127.0.0.1:1: "},
		"--store mysql://user:secret@127.0.0.1":                         {"--store mysql://127.0.0.1: its scheme is unknown; accepted: memory, or a URL: memcached://"},
		"--store=":                                                      {"--store", "empty"},
		"--store redis://127.0.0.1:1 --max-keys 5":                      {"--max-keys 5", "memory only"},
		"--store redis://127.0.0.1:1 --overflow deny":                   {"--overflow deny", "memory only"},
		"--store redis://user:secret@127.0.0.1:x":                       {"redis://127.0.0.1:x", "port"},
	} {
		_, log, code := runProgram(append([]string{"serve", "--resp", "0", "--http", "0", "--wait-for-store", "1ms"}, strings.Fields(args)...)...)
		if code == exitOK || strings.Contains(log, "secret") {
			t.Errorf("%s: exit code %d, %s", args, code, log)
		}
		for _, part := range want {
			if !strings.Contains(log, part) {
				t.Errorf("%s: %q does not say %q", args, log, part)
			}
		}
	}
}

// What trusts its clients' times over one that does not would give them errors only.
func TestTrustEndsAtAServerThatDoesNot(t *testing.T) {
	d := startDaemon(t, "memory")
	_, log, code := runProgram("serve", "--resp", "0", "--http", "0", "--trust-client-time", "--store", "weir://"+d.resp)
	if code != exitError || !strings.Contains(log, "decides by its own clock") {
		t.Errorf("exit code %d, %s", code, log)
	}
}

func TestMigrationIsPrinted(t *testing.T) {
	out, _, code := runProgram("migration", "--table", "limits.states", "--unlogged")
	if code != exitOK || !strings.Contains(out, `CREATE UNLOGGED TABLE IF NOT EXISTS "limits"."states"`) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, log, code := runProgram("migration", "--table", `a"b`); code != exitError || !strings.Contains(log, "accepted") {
		t.Errorf("exit code %d: %s", code, log)
	}
}
