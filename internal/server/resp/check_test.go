package resp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const rules = `
policies:
  - {name: login, match: {method: POST, path: /login}, key: [client_ip], limits: ["2/2s"], candidate: ["1/1s"]}
  - {name: work, match: {path: /work}, key: ["header:X-Key"], limits: ["concurrent 1 lease=1h"]}
  - {name: paid, match: {path: /paid}, key: ["attribute:tenant"], cost: "header:X-Cost", limits: ["10/10s"]}
  - {name: plan, match: {path: /plan}, key: ["header:X-Key"], limits: ["10/1h"], plans: {free: unlimited, none: deny}}
  - {name: host, match: {host: h, query: {a: "1"}}, key: [host], limits: ["5/5s"]}
`

// ruled are policies over a store.
func ruled(t testing.TB, s store.Store) checks.Policies {
	t.Helper()
	c, err := policy.Parse([]byte(rules), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.New(c, policy.Options{Store: s, Clients: planned{}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// planned are clients whose plans are their names.
type planned struct{}

func (planned) Grant(client string) (*policy.Grant, bool) {
	return &policy.Grant{Plan: client}, client == "free" || client == "none"
}

func (planned) Grants(f func(*policy.Grant) error) error {
	return errors.Join(f(&policy.Grant{Plan: "free"}), f(&policy.Grant{Plan: "none"}))
}

func TestChecks(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, newStoppedClock())}})
	c := dial(t, address)
	c.expect([][2]string{
		{`WEIR.CHECK METHOD POST PATH /login IP 192.0.2.7`, "[1 2 1 0 1000000 0 []  [[login 2/2s enforced 1 2 1 0 1000000 0] [login 1/1s candidate 1 1 0 0 1000000 0]]]"},
		{`weir.check path /login method POST ip ::ffff:192.0.2.7 cost 2`,
			"[0 2 1 1000000 1000000 0 [login]  [[login 2/2s enforced 0 2 1 1000000 1000000 0] [login 1/1s candidate 0 1 0 -1 1000000 0]]]"},
		{`WEIR.CHECK METHOD POST PATH /login IP 192.0.2.8 COST 3`,
			"[0 2 2 -1 0 0 [login]  [[login 2/2s enforced 0 2 2 -1 0 0] [login 1/1s candidate 0 1 1 -1 0 0]]]"},
		{`WEIR.CHECK`, "[1 0 0 0 0 0 []  []]"},
		{`WEIR.CHECK PATH ""`, "[1 0 0 0 0 0 []  []]"},
		{`WEIR.CHECK PATH /plan HEADER x-key free`, "[1 0 0 0 0 0 []  [[plan unlimited enforced 1 0 0 0 0 0]]]"},
		{`WEIR.CHECK PATH /plan HEADER X-KEY none HEADER x-key free`, "[0 0 0 -1 0 0 [plan]  [[plan deny enforced 0 0 0 -1 0 0]]]"},
		{`WEIR.CHECK PATH /paid ATTR tenant a HEADER X-Cost 7`, "[1 10 3 0 7000000 0 []  [[paid 10/10s enforced 1 10 3 0 7000000 0]]]"},
		{`WEIR.CHECK HOST h:80 QUERY b&a=1`, "[1 5 4 0 1000000 0 []  [[host 5/5s enforced 1 5 4 0 1000000 0]]]"},
		{`WEIR.CHECK PATH login`, `ERR PATH is "login"; accepted: a path that begins with / and has no ?, decoded; what follows the ? is the query`},
		{`WEIR.CHECK IP nobody`, `ERR IP is "nobody"; accepted: an IPv4 or IPv6 address, such as 192.0.2.7`},
		{`WEIR.CHECK COST -1`, `ERR COST is "-1"; accepted: a whole number from 0 to 9007199254740992`},
		{`WEIR.CHECK COST x`, `ERR COST is "x"; accepted: a whole number from 0 to 9007199254740992`},
		{`WEIR.CHECK HOLD 86400001`, `ERR HOLD is "86400001"; accepted: whole milliseconds from 0, for none, to 86400000`},
		{`WEIR.CHECK HEADER "a b" c`, `ERR HEADER is "\"a b\""; accepted: a header's name, of letters, digits and !#$%&'*+-.^_` + "`|~"},
		{`WEIR.CHECK ATTR a 1 ATTR a 2`, `ERR ATTR is "\"a\" given twice"; accepted: each name once`},
		{`WEIR.CHECK PATH / PATH /`, `ERR syntax error at "PATH"; accepted: METHOD m, HOST h, PATH p, QUERY q, IP address, COST n, HOLD milliseconds, ONERROR deny|allow|local, each once; and HEADER name value, ATTR name value`},
		{`WEIR.CHECK KEY k`, `ERR syntax error at "KEY"; accepted: METHOD m, HOST h, PATH p, QUERY q, IP address, COST n, HOLD milliseconds, ONERROR deny|allow|local, each once; and HEADER name value, ATTR name value`},
		{`WEIR.CHECK PATH`, `ERR syntax error: "PATH" needs a value`},
		{`WEIR.CHECK HEADER a`, `ERR syntax error: "HEADER" needs a name and a value`},
		{`WEIR.CHECK PATH /paid HEADER X-Cost much`, `ERR header X-Cost is "much"; accepted: a whole number, 1 to 9007199254740992`},
		{`WEIR.CHECK ` + strings.Repeat("HEADER a b ", 101), `ERR HEADER is "more than 100"; accepted: at most 100`},
		{`WEIR.CHECK.RELEASE nonsense`, `ERR this is no token; accepted: the one of a decision, as it was given`},
		{`WEIR.CHECK.COMMIT x -1`, `ERR cost is "-1"; accepted: a whole number from 0 to 9007199254740992`},
		{`WEIR.CHECK.COMMIT x 1 EARLY`, `ERR syntax error at "EARLY"; accepted: LATE, once`},
		{`WEIR.CHECK.COMMIT x 1 LATE LATE`, `ERR syntax error at "LATE"; accepted: LATE, once`},
		{`WEIR.CHECK.RELEASE x LATE`, `ERR wrong number of arguments for 'weir.check.release' command`},
		{`WEIR.CHECK.RELEASE`, `ERR wrong number of arguments for 'weir.check.release' command`},
		{`WEIR.CHECK.COMMIT x`, `ERR wrong number of arguments for 'weir.check.commit' command`},
	}...)
}

func TestNoPolicies(t *testing.T) {
	server, address := start(t, resp.Options{Service: &operation.Service{}})
	c := dial(t, address)
	for _, command := range []string{"WEIR.CHECK PATH /", "WEIR.CHECK.RELEASE t", "WEIR.CHECK.COMMIT t 1", "WEIR.CHECK.CANCEL t", "WEIR.CHECK.RENEW t"} {
		if got := c.do(command); got != "ERR this server has no policies; weir serve --config weir.yaml has those of the file" {
			t.Errorf("%s: %s", command, got)
		}
	}
	eventually(t, "the errors are counted", func() bool { return server.Stats().Errors == 5 && server.Stats().Undecided == 0 })
}

// token returns the token in the reply to a check.
func token(t *testing.T, reply string) string {
	t.Helper()
	m := regexp.MustCompile(`^\[1 [0-9 ]+\[\] (\S+) \[\[`).FindStringSubmatch(reply)
	if m == nil {
		t.Fatalf("no token in %s", reply)
	}
	return m[1]
}

func TestLeasesAndReservationsOfChecks(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, memory.New(memory.Options{}))}})
	c := dial(t, address)
	const work = "WEIR.CHECK PATH /work HEADER X-Key k"
	first := token(t, c.do(work))
	if got := c.do(work); !strings.HasPrefix(got, "[0 1 0 ") {
		t.Errorf("while one works: %s", got)
	}
	renewed := c.do("WEIR.CHECK.RENEW " + first)
	if got := c.do(work); !strings.HasPrefix(got, "[0 1 0 ") {
		t.Errorf("while it goes on: %s", got)
	}
	if got := c.do("WEIR.CHECK.RELEASE " + renewed); got != "OK" {
		t.Errorf("release: %s", got)
	}
	second := token(t, c.do(work))
	const settled = "ERR nothing is held under the token any more: it was settled, or its time is over"
	if got := c.do("WEIR.CHECK.RENEW " + renewed); got != settled {
		t.Errorf("a renewal that comes too late: %s", got)
	}
	if got := c.do("WEIR.CHECK.CANCEL " + second); got != "OK" {
		t.Errorf("cancel: %s", got)
	}
	if got := c.do("WEIR.CHECK.CANCEL " + second); got != settled {
		t.Errorf("cancel again: %s", got)
	}
	held := token(t, c.do("WEIR.CHECK PATH /paid COST 8 HOLD 60000"))
	if got := c.do("WEIR.CHECK.COMMIT " + held + " 2"); got != "OK" {
		t.Errorf("commit: %s", got)
	}
	if got := c.do("WEIR.CHECK PATH /paid COST 8"); !strings.HasPrefix(got, "[1 10 0 ") {
		t.Errorf("after a commit of 2 out of 8: %s", got)
	}
	if got := c.do("WEIR.CHECK.COMMIT " + held + " 2"); got != settled {
		t.Errorf("commit again: %s", got)
	}
	// of expired reservations
	if got := c.do("WEIR.CHECK.COMMIT " + held + " 5 late"); got != "OK" {
		t.Errorf("late commit: %s", got)
	}
	if got := c.do("WEIR.CHECK PATH /paid COST 1"); !strings.Contains(got, " 10 0 ") || !strings.HasPrefix(got, "[0 ") {
		t.Errorf("after a late commit: %s", got)
	}
}

// A store of policies that fails decides as they say; its error goes to the log.
func TestChecksWhoseStoreFails(t *testing.T) {
	var log safeText
	server, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, unreachable{memory.New(memory.Options{})}), Log: newLogger(&log)}})
	if got := dial(t, address).do("WEIR.CHECK METHOD POST PATH /login IP 192.0.2.7"); got != "[0 2 0 1000000 0 0 [login]  [[login 2/2s enforced 0 2 0 1000000 0 0]]]" {
		t.Errorf("got %s", got)
	}
	eventually(t, "the denial is counted", func() bool { return server.Stats().Denied == 1 })
	if s := server.Stats(); s.Undecided != 1 || s.Errors != 0 {
		t.Errorf("counted %+v", s)
	}
	if !strings.Contains(log.String(), "dial tcp 10.1.2.3") {
		t.Errorf("the log does not tell why: %s", log.String())
	}
}

// safeText is written and read by several goroutines.
type safeText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *safeText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// unreachable is a store without its engine.
type unreachable struct{ store.Store }

func (u unreachable) Bind(spec store.Spec) (store.Binding, error) {
	b, err := u.Store.Bind(spec)
	return unreachableBinding{b}, err
}

type unreachableBinding struct{ store.Binding }

func (unreachableBinding) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("dial tcp 10.1.2.3: no route")
}

// Checks of a pipeline, over a store that waits, are decided in their order, and while others are.
func TestChecksOverAWaitingStore(t *testing.T) {
	f := newFar(10 * time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		f.Store = memory.New(memory.Options{})
		p := newPipes()
		server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(f), Policies: ruled(t, f), Waits: true}})
		go func() { _ = server.Serve(p) }()
		nc := p.dial()
		defer nc.Close()
		c := &client{t, nc, bufio.NewReader(nc)}
		const check = "WEIR.CHECK HOST h QUERY a=1 COST "
		c.send("MULTI\r\n" + check + "1\r\nPING\r\nEXEC\r\n" + check + "3\r\n" + check + "2\r\nWEIR.TAKE k 1/1h\r\n" + check + "1\r\nWEIR.CHECK PATH x\r\n" +
			"CLIENT REPLY SKIP\r\n" + check + "1\r\nPING\r\n")
		for i, want := range []string{"OK", "QUEUED", "QUEUED", "[[1 5 4 ", "[1 5 1 ", "[0 5 1 ", "[1 1 0 ", "[1 5 0 ", "ERR PATH", "PONG"} {
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Errorf("reply %d is %s, want %s…", i, got, want)
			}
		}
		if costs := takes(f.order["h"]); !slices.Equal(costs, []int64{1, 3, 2, 1, 1}) {
			t.Errorf("checks were carried out in the order %d", costs)
		}
		began := time.Now()
		c.send(lines(60, "WEIR.CHECK METHOD POST PATH /login IP 192.0.2.#"))
		for range 60 {
			c.reply()
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("checks for 60 keys took %v: they waited for one another", took)
		}
		synctest.Wait()
		if s := server.Stats(); s.Allowed != 64 || s.Denied != 2 || s.Errors != 1 {
			t.Errorf("counted %+v", s)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// takes are the costs of operations other than peeks.
func takes(costs []int64) []int64 {
	return slices.DeleteFunc(slices.Clone(costs), func(c int64) bool { return c == 0 })
}

func TestChecksByRedisCLI(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		lacking(t, "redis-cli")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, newStoppedClock())}})
	cli := func(args ...string) string {
		return run(t, "redis-cli", append([]string{"-p", port(t, address)}, args...)...)
	}
	sameLines(t, cli("WEIR.CHECK", "METHOD", "POST", "PATH", "/login", "IP", "192.0.2.7"), "1\n2\n1\n0\n1000000\n0\n\n\nlogin\n2/2s\nenforced\n1\n2\n1\n0\n1000000\n0\nlogin\n1/1s\ncandidate\n1\n1\n0\n0\n1000000\n0")
	sameLines(t, cli("-3", "WEIR.CHECK", "PATH", "/plan", "HEADER", "X-Key", "none"), "0\n0\n0\n-1\n0\n0\nplan\n\nplan\ndeny\nenforced\n0\n0\n0\n-1\n0\n0")
	if help := cli("--no-raw", "COMMAND", "DOCS", "weir.check.release"); !strings.Contains(help, "work of a request that was checked is done") {
		t.Errorf("COMMAND DOCS: %s", help)
	}
}

func TestChecksByRedisPy(t *testing.T) {
	const python = "/usr/bin/python3"
	if exec.Command(python, "-c", "import redis").Run() != nil {
		lacking(t, "python3-redis")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{Policies: ruled(t, memory.New(memory.Options{}))}})
	sameLines(t, run(t, python, "testdata/check.py", port(t, address)), `
login [1, 1, 0] ['login']
limits ['login', '2/2s', 'enforced']
pipeline 5
released OK
busy [1, 0] True
renewed True
settled nothing is held under the token any more: it was settled, or its time is over`)
}

// FuzzCheck sends any arguments. Whatever they are there is one reply, and the connection goes on.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"METHOD\nPOST\nPATH\n/login\nIP\n192.0.2.7", "HEADER\nX-Key\nfree\nPATH\n/plan", "ATTR\ntenant\na\nCOST\n3\nHOLD\n1000", "PATH\n/login?x", "HEADER\na", "IP\nfe80::1%eth0",
		"COST\n9007199254740993", "path\n\xff\xfe\nhost\nh:1\nquery\na=%zz&a=1", "", "HOLD\n-1", "ATTR\n\n\nATTR\n\n\n",
	} {
		f.Add(seed)
	}
	_, address := start(f, resp.Options{Service: &operation.Service{Policies: ruled(f, memory.New(memory.Options{MaxKeys: 1000}))}})
	f.Fuzz(func(t *testing.T, words string) {
		args := strings.Split(words, "\n")
		if len(args) > 1000 {
			return
		}
		c := dial(t, address)
		defer c.Close()
		c.send(array(append([]string{"WEIR.CHECK"}, args...)...) + array("PING"))
		if got := c.reply(); !strings.HasPrefix(got, "[0 ") && !strings.HasPrefix(got, "[1 ") && !strings.HasPrefix(got, "ERR ") {
			t.Errorf("%q: %s", args, got)
		}
		if got := c.reply(); got != "PONG" {
			t.Errorf("%q, then a PING: %s", args, got)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	_, address := start(b, resp.Options{Service: &operation.Service{Policies: ruled(b, memory.New(memory.Options{}))}})
	c := dial(b, address)
	var pipeline strings.Builder
	for i := range 100 {
		pipeline.WriteString(array("WEIR.CHECK", "METHOD", "POST", "PATH", "/login", "IP", fmt.Sprintf("192.0.2.%d", i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		c.send(pipeline.String())
		for range 100 {
			c.reply()
		}
	}
	b.ReportMetric(float64(b.N*100)/b.Elapsed().Seconds(), "checks/s")
}
