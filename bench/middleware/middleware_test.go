package middleware

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/bench/harness"
)

// TestMain lets the test's own binary be the process that a slot runs in.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == Command.Name {
		if err := harness.Main(context.Background(), Command, os.Args[2:], os.Stdout, os.Stderr); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestARunMeasuresEveryPairAndSaysNothingMisbehaved(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "lines")
	var out, progress strings.Builder
	rounds := 2
	if testing.Short() { // each measurement is a process
		rounds = 1
	}
	args := []string{"-rounds", strconv.Itoa(rounds), "-time", "1ms", "-only", "weir, no;weir, charging;bare;throttled", "-workloads", "one,denied,server", "-benchstat", file, "-profiles", folder}
	if err := harness.Main(t.Context(), Command, args, &out, &progress); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(progress.String(), "  "); n != rounds*(4+2+4) {
		t.Errorf("%d measurements, want %d (two deny nothing):\n%s", n, rounds*(4+2+4), progress.String())
	}
	for _, want := range []string{"| weir, no header fields |", "| throttled | X-Ratelimit-Limit, X-Ratelimit-Remaining, X-Ratelimit-Reset | Content-Type, Retry-After,", "requests a second"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "should have been") {
		t.Errorf("a contender misbehaved:\n%s", out.String())
	}
	lines, err := os.ReadFile(file)
	if err != nil || strings.Count(string(lines), "BenchmarkOne/peer=") != rounds*4 || strings.Count(string(lines), " ns/op") != rounds*(4+2+4) {
		t.Errorf("benchstat file (%v):\n%s", err, lines)
	}
	if _, err := os.Stat(filepath.Join(folder, "server-bare-handler.pprof")); err != nil {
		t.Error(err)
	}
}

func TestASlotWritesItsResultAsJSON(t *testing.T) {
	var out strings.Builder
	if err := harness.Main(t.Context(), Command, []string{"-slot", `{"Contender":"weir","Workload":"one","Time":1000000}`}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r harness.Result
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Contender != weirName || r.Timing.Admitted == 0 || r.Timing.Nanoseconds <= 0 || r.Timing.Processor <= 0 {
		t.Errorf("got %q: %+v, %v", out.String(), r, err)
	}
}

func TestFlagsNameWhatTheyAccept(t *testing.T) {
	for flags, want := range map[string]string{
		"-time 4s": "-time is 4s", "-only nobody": `-only is "nobody", which selects none; accepted: weir`,
		"-workloads cold": `-workloads is "cold", which selects none; accepted: one; one-cores`, `-slot {"Contender":"nobody"}`: `contender is "nobody"`,
		`-slot {"Contender":"weir","Workload":"cold"}`: `workload is "cold"`,
	} {
		if err := harness.Main(t.Context(), Command, strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
}

// The budgets are so far apart from what a run can use that a wrong one shows.
func TestEveryContenderAdmitsAllOrDeniesAll(t *testing.T) {
	for _, c := range contenders() {
		for _, w := range workloads() {
			if w.many || w.denied() && c.Open {
				continue
			}
			got, err := w.run(c, time.Millisecond)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.Name, w.Name, err)
			}
			right := got.Admitted
			if w.denied() {
				right = got.Denied
			}
			// A contender may give up after so many lost races (throttled: ten); a budget that is wrong shows in nearly all.
			if mayLose := got.Requests / 2; right != got.Requests && (!w.Cores || right < mayLose) {
				t.Errorf("%s, %s: %+v", c.Name, w.Name, got)
			}
		}
	}
}

func TestEveryContenderKeepsClientsApart(t *testing.T) {
	all := each(500)
	for _, c := range contenders() {
		if c.Open {
			continue
		}
		wrap, err := c.New(spent)
		if err != nil {
			t.Fatal(err)
		}
		one, cancel := newCaller(wrap(http.HandlerFunc(noContent)))
		defer cancel()
		for _, want := range []int{http.StatusNoContent, http.StatusTooManyRequests} {
			for i := range all.len() {
				if got := one.call(all.addr(i)); got != want {
					t.Fatalf("%s: client %s was answered %d, want %d", c.Name, all.addr(i), got, want)
				}
			}
		}
	}
}

func TestTheBudgetOfManyClientsAdmitsAll(t *testing.T) {
	for _, c := range contenders() {
		wrap, err := c.New(ofMany)
		if err != nil {
			t.Fatal(err)
		}
		one, cancel := newCaller(wrap(http.HandlerFunc(noContent)))
		defer cancel()
		for i, addr := range []string{each(1).addr(0), each(2).addr(1), each(1).addr(0)} {
			if got := one.call(addr); got != http.StatusNoContent {
				t.Errorf("%s answered %d to request %d", c.Name, got, i)
			}
		}
	}
}

func TestClientsAreDifferentAndAddressesAreUsable(t *testing.T) {
	all, seen := each(clients), map[string]bool{}
	for i := range all.len() {
		seen[all.addr(i)] = true
		if _, err := netip.ParseAddrPort(all.addr(i)); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != clients {
		t.Errorf("%d different clients, want %d", len(seen), clients)
	}
	drawn, again := uniform(2000), uniform(2000)
	if drawn != again {
		t.Error("two draws differ")
	}
	for i := range drawn.len() {
		if !seen[drawn.addr(i)] {
			t.Fatalf("%s is drawn, and is no client", drawn.addr(i))
		}
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	for text, want := range map[string]int{
		"HTTP/1.1 204 No Content\r\n\r\n": 204, "HTTP/1.1 429 X\r\nA: b\r\n\r\n": 429,
		"": 0, "HTTP/1.1 204 No Content\r\n": 0, "\r\n\r\n": 0, "HTTP/1.1 2\r\n\r\n": 0, "HTTP/1.1 abc\r\n\r\n": 0, "FTP 220 x, a long line\r\n\r\n": 0,
		"HTTP/1.1 204 No Content\r\nA: " + strings.Repeat("b", 5000) + "\r\n\r\n": 0,
	} {
		server, client := net.Pipe()
		go func() {
			io.WriteString(server, text)
			server.Close()
		}()
		got, err := answer(client, make([]byte, 4096))
		client.Close()
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("%.30q: %d, %v, want %d", text, got, err, want)
		}
	}
}

func result1(name, slug string, ns float64, admitted, denied int64) harness.Result {
	return harness.Result{Contender: name, Workload: slug, Timing: harness.Timing{Requests: 10, Admitted: admitted, Denied: denied, Processor: ns, Nanoseconds: 1}}
}

func tablesOf(t *testing.T, passed bool, results ...harness.Result) string {
	t.Helper()
	p, err := newPlan(harness.Settings{Wall: passed, Rounds: 2, Workloads: "one,denied", Only: "weir;throttled;bare"})
	if err != nil {
		t.Fatal(err)
	}
	p.results = results
	var b strings.Builder
	if err := p.print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The second round was ten times slower for all.
func TestTheBareHandlerIsTakenOffWithinARound(t *testing.T) {
	got := tablesOf(t, false, result1(bareName, "one", 10, 10, 0), result1(bareName, "one", 100, 10, 0), result1(weirName, "one", 110, 10, 0), result1(weirName, "one", 1100, 10, 0),
		result1("throttled", "one", 210, 10, 0), result1("throttled", "one", 2100, 10, 0), result1(weirName, "denied", 60, 0, 10), result1("throttled", "denied", 35, 0, 10))
	for _, want := range []string{"| weir | 550 |", "| throttled | 1100 |", "| throttled | 2.00 | 0.50 |", "| weir | 50.0 |", "| bare handler | (55.0) |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTheTimeThatPassesIsShownIfAskedFor(t *testing.T) {
	got := tablesOf(t, true, result1(bareName, "one", 10, 10, 0), result1(weirName, "one", 110, 10, 0))
	if want := "Nanoseconds that the middleware adds"; !strings.Contains(got, want) || !strings.Contains(got, "| weir | 0.00 |") || !strings.Contains(got, "| bare handler | (1.00) |") {
		t.Errorf("no %q, or other figures, in\n%s", want, got)
	}
}

func TestAContenderThatMisbehavesIsNamed(t *testing.T) {
	got := tablesOf(t, false, result1(weirName, "one", 50, 9, 1), result1("throttled", "denied", 5, 0, 7))
	for _, want := range []string{"- weir, one client: admitted 9 of 10, should have been all", "- throttled, one client, denied: denied 7 of 10, should have been all"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestARunThatIsEndedEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := harness.Main(ctx, Command, []string{"-rounds", "1", "-time", "1ms", "-only", "bare"}, io.Discard, io.Discard); err == nil {
		t.Error("no error, want that of the context")
	}
}
