package inprocess

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/peer"
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
	file := filepath.Join(t.TempDir(), "lines")
	var out, progress strings.Builder
	rounds := 2
	if testing.Short() { // each measurement is a process
		rounds = 1
	}
	args := fmt.Sprint("-rounds ", rounds, " -time 1ms -only weir;bare;uber;sync.Map -workloads hot,denied -skip-memory -benchstat ", file)
	if err := harness.Main(t.Context(), Command, strings.Fields(args), &out, &progress); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(progress.String(), "  "); n != rounds*(7+6) {
		t.Errorf("%d measurements, want %d (a pacer has no denied path):\n%s", n, rounds*(7+6), progress.String())
	}
	for _, want := range []string{"| x/time/rate in sync.Map |", "| hot key | x/time/rate in sync.Map |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "should have been") {
		t.Errorf("a peer misbehaved:\n%s", out.String())
	}
	lines, err := os.ReadFile(file)
	if err != nil || strings.Count(string(lines), "BenchmarkHot/peer=") != rounds*7 || strings.Count(string(lines), " ns/op") != rounds*(7+6) {
		t.Errorf("benchstat file (%v):\n%s", err, lines)
	}
}

func TestASlotWritesItsResultAsJSON(t *testing.T) {
	var out strings.Builder
	slot := `{"Contender":"bare table","Workload":"hot","Time":1000000}`
	if err := harness.Main(t.Context(), Command, []string{"-slot", slot}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r harness.Result
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Contender != peer.Bare || r.Timing.Admitted == 0 || r.Timing.Processor <= 0 {
		t.Errorf("got %q: %+v, %v", out.String(), r, err)
	}
}

func TestFlagsNameWhatTheyAccept(t *testing.T) {
	for flags, want := range map[string]string{
		"-only nobody": `-only is "nobody", which selects none; accepted: weir`, "-workloads cold": `-workloads is "cold", which selects none; accepted: hot`,
		`-slot {"Contender":"nobody"}`: `peer is "nobody"; accepted: weir`, `-slot {"Contender":"weir","Workload":"cold"}`: `workload is "cold"; accepted: hot`,
	} {
		if err := harness.Main(t.Context(), Command, strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
}

func timing(name string, ns float64, admitted int64) harness.Result {
	return harness.Result{Contender: name, Workload: "hot", Timing: harness.Timing{Requests: 10, Admitted: admitted, Nanoseconds: ns}}
}

func tablesOf(t *testing.T, results ...harness.Result) string {
	t.Helper()
	p, err := newPlan(harness.Settings{Rounds: 2, Workloads: "hot"})
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

func TestTheFastestPeerIsOneThatKeepsKeysApartAndDecides(t *testing.T) {
	got := tablesOf(t, timing(peer.Weir, 50, 10), timing(peer.Weir, 500, 10), timing("throttled", 150, 10), timing("throttled", 1500, 10),
		timing("tollbooth", 400, 10), timing("httprate", 20, 10), timing("uber-go/ratelimit", 10, 10), timing(peer.Bare, 40, 10), timing(peer.Bare, 400, 10))
	if want := "| hot key | throttled | 825 | 275 | 3.00 | 2 | 1.25 |"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestAPeerThatDoesNotAdmitIsNamed(t *testing.T) {
	got := tablesOf(t, timing(peer.Weir, 50, 10), timing("throttled", 5, 3))
	if want := "throttled, hot key: admitted 3 of 10, should have been all"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
