package servers

import (
	"bufio"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/internal/testengine"
)

func startRedis(t *testing.T) *target {
	t.Helper()
	testengine.Redis(t) // skips the test without Redis
	for _, r := range targets(t.TempDir()) {
		if r.script {
			if err := r.begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.run.Stop)
			return r
		}
	}
	t.Fatal("no target has a script")
	return nil
}

func TestEveryTargetAnswersItsCommand(t *testing.T) {
	testengine.Redis(t) // skips the test without Redis
	all := targets(t.TempDir())
	if err := build(filepath.Dir(all[0].server[0]), all); err != nil {
		t.Fatal(err)
	}
	for _, each := range all {
		err := each.begin(t.Context())
		if each.run != nil {
			each.run.Stop()
		}
		if err != nil {
			t.Error(err)
		}
	}
}

func TestScriptAdmitsTheBurstAndSaysHowLongToWait(t *testing.T) {
	r := startRedis(t)
	take := func(cost string) []string {
		v, err := call(r.address, "EVALSHA", r.command[1], "1", "k", "5", "3600000000", cost)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := take("2"); v[0] != "1" || v[1] != "5" || v[2] != "3" || v[3] != "0" || v[4] != "7200000000" {
		t.Errorf("first: %q, want allowed, 3 of 5 left, fresh after two hours", v)
	}
	if v := take("3"); v[0] != "1" || v[2] != "0" {
		t.Errorf("second: %q, want allowed and none left", v)
	}
	v := take("1")
	wait, err := strconv.ParseInt(v[3], 10, 64)
	if v[0] != "0" || err != nil || wait <= 0 || wait > 3_600_000_000 {
		t.Errorf("third: %q, want denied for up to an hour", v)
	}
	if ttl, err := call(r.address, "PTTL", "k"); err != nil || ttl[0] > "18000000" || len(ttl[0]) != 8 {
		t.Errorf("the key lives for %v ms (%v), want up to five hours", ttl, err)
	}
}

func TestFireCountsRequestsAndProcessorTime(t *testing.T) {
	r := startRedis(t)
	got, err := r.fire(context.Background(), 20_000, 16)
	if err != nil {
		t.Fatal(err)
	}
	if got.perSecond <= 0 || got.cpu <= 0 {
		t.Errorf("got %+v, want a rate and processor time above 0", got)
	}
	if n, err := r.calibrate(context.Background(), 16, 10*time.Millisecond); err != nil || n < 800 || n%800 != 0 {
		t.Errorf("calibrated to %d, %v; want a multiple of what one turn of all connections sends", n, err)
	}
	if keys, err := call(r.address, "DBSIZE"); err != nil || len(keys[0]) < 5 {
		t.Errorf("database has %v keys (%v), want over 10000: every request its own", keys, err)
	}
}

func TestKeyHasTwentyBytes(t *testing.T) {
	if n := len(strings.Replace(key, "__rand_int__", "000000000000", 1)); n != 20 {
		t.Errorf("%d bytes, want 20", n)
	}
}

func TestTargetsOfWeirAndScriptHaveOneLimit(t *testing.T) {
	all := targets("")
	if c := all[0].command; c[2] != "1000/1000h" {
		t.Errorf("WEIR.TAKE has %q", c)
	}
	if c := all[1].command; !slices.Equal(c[2:], []string{"999", "1000", "3600000"}) {
		t.Errorf("CL.THROTTLE has %q", c)
	}
	if c := all[3].command; !slices.Equal(c[4:], []string{"1000", "3600000000", "1"}) {
		t.Errorf("the script has %q", c)
	}
}

func TestProcessorTimeIsReadBehindAnyName(t *testing.T) {
	got, err := cpuOf("7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 120 30 0 0 20 0 1 0 5 6 7")
	if err != nil || got != 1500*time.Millisecond {
		t.Errorf("got %v, %v; want 1.5s", got, err)
	}
	if _, err := cpuOf("7 (a) S 1"); err == nil {
		t.Error("a line cut short was accepted")
	}
}

func TestRateIsReadBehindWarnings(t *testing.T) {
	out := "WARNING: no config\n\"test\",\"rps\",\"avg_latency_ms\"\n\"INCR k\",\"61234.50\",\"0.4\"\n"
	if got, err := perSecond([]byte(out)); err != nil || got != 61234.5 {
		t.Errorf("got %v, %v; want 61234.5", got, err)
	}
	if _, err := perSecond([]byte("Could not connect")); err == nil {
		t.Error("no table, and no error")
	}
}

func TestRepliesAreReadOrRefused(t *testing.T) {
	got, err := reply(bufio.NewReader(strings.NewReader("*3\r\n:1\r\n$2\r\nab\r\n+OK\r\n")))
	if err != nil || !slices.Equal(got, []string{"1", "ab", "OK"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"-ERR no\r\n", "\r\n", "*-5\r\n", "*100\r\n", "$99999999\r\n", "$x\r\n", "*2\r\n:1\r\n", ""} {
		if got, err := reply(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q was read as %q", bad, got)
		}
	}
}

func TestATargetThatDoesNotComeUpIsReported(t *testing.T) {
	testengine.Redis(t) // skips the test without Redis
	bad := &target{server: []string{"redis-server", "--port", "%PORT%", "--no-such-setting", "1"}}
	if err := bad.begin(t.Context()); err == nil || !strings.Contains(err.Error(), "redis-server ended before it served") {
		t.Errorf("error is %v", err)
	}
}

func TestFlagsNameWhatTheyAccept(t *testing.T) {
	for flags, want := range map[string]string{"-time 1ms": "-time is 1ms", "-fill -1": "-fill is -1", "-only x": `-only is "x", which selects none; accepted: weir WEIR.TAKE; weir CL`} {
		if err := harness.Main(t.Context(), Command, strings.Fields(flags), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", flags, err, want)
		}
	}
}

func TestTablesShowMediansAndRatios(t *testing.T) {
	m := &measurement{Settings: harness.Settings{Rounds: 2}, targets: []*target{{name: "weir WEIR.TAKE"}, {name: "Redis INCR"}}, results: map[pair][]result{}}
	for i := range 2 {
		slow := float64(1 + 9*i) // the second round ran ten times slower
		m.results[pair{"weir WEIR.TAKE", 64}] = append(m.results[pair{"weir WEIR.TAKE", 64}], result{2e6 / slow, 0.5 * slow, 1})
		m.results[pair{"Redis INCR", 64}] = append(m.results[pair{"Redis INCR", 64}], result{1e6 / slow, 1.5 * slow, 0.5})
	}
	var b strings.Builder
	if err := m.print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| Redis INCR | – | – | 3.00 |", "1.10M · 2.75 · 100 %"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
