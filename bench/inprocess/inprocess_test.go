package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
)

// TestMain lets the test's own binary be the process that a slot runs in.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-slot" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestARunMeasuresEveryPairAndSaysNothingMisbehaved(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	var out, progress strings.Builder
	args := "-rounds 2 -time 1ms -peers weir,bare,uber,sync.Map -workloads hot,denied -skip-memory -benchstat " + file
	if err := run(strings.Fields(args), &out, &progress); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(progress.String(), "  "); n != 2*(7+6) {
		t.Errorf("%d measurements, want 26 (a pacer has no denied path):\n%s", n, progress.String())
	}
	for _, want := range []string{"golang.org/x/time v", "| x/time/rate in sync.Map |", "| hot key | x/time/rate in sync.Map |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "should have been") {
		t.Errorf("a peer misbehaved:\n%s", out.String())
	}
	lines, err := os.ReadFile(file)
	if err != nil || strings.Count(string(lines), "BenchmarkHot/peer=") != 14 || strings.Count(string(lines), " ns/op") != 26 {
		t.Errorf("benchstat file (%v):\n%s", err, lines)
	}
}

func TestASlotWritesItsResultAsJSON(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-slot", "hot", "-slot-peer", peer.Bare, "-time", "1ms"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Peer != peer.Bare || r.Timing.Admitted == 0 {
		t.Errorf("got %q: %+v, %v", out.String(), r, err)
	}
}

func TestParseNamesWhatItAccepts(t *testing.T) {
	for flags, want := range map[string]string{
		"-rounds 101": "-rounds is 101", "-time 4s": "-time is 4s", "more": `"more"`,
		"-peers nobody": `peer is "nobody"; accepted: weir`, "-workloads cold": `workload is "cold"; accepted: hot`,
	} {
		if err := run(strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
}

func timing(name string, ns float64, admitted int64) result {
	return result{Peer: name, Workload: "hot", Timing: load.Timing{Requests: 10, Admitted: admitted, Nanoseconds: ns}}
}

func tablesOf(t *testing.T, results ...result) string {
	t.Helper()
	p, err := makePlan(settings{rounds: 2, workloads: "hot"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.print(&b, results); err != nil {
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
	if want := "throttled, hot key: admitted 3 of 10, should have been 10"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestBenchstatNamesHaveNoCharacterOfTheFormat(t *testing.T) {
	for _, p := range peer.All() {
		if s := slug(p.Name); strings.ContainsAny(s, " ,/\t=") {
			t.Errorf("%q becomes %q", p.Name, s)
		}
	}
}
