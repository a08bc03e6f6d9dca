package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/replay"
)

var start = time.Date(2015, 5, 17, 10, 5, 0, 0, time.UTC)

// entry is a line of combined format.
func entry(client string, at time.Time) string {
	return fmt.Sprintf("%s - - [%s] \"GET / HTTP/1.1\" 200 5 \"-\" \"test\"\n", client, at.Format("02/Jan/2006:15:04:05 -0700"))
}

// after is a line of client c, some seconds after start.
func after(seconds int) string { return entry("c", start.Add(time.Duration(seconds)*time.Second)) }

func run(t *testing.T, o replay.Options, logs ...string) *replay.Report {
	t.Helper()
	var list []replay.Log
	for i, text := range logs {
		list = append(list, replay.Log{Name: fmt.Sprintf("log%d", i), Reader: strings.NewReader(text)})
	}
	report, err := replay.Run(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func options(limits ...string) replay.Options {
	o := replay.Options{Window: replay.DefaultWindow, Top: 10}
	for _, l := range limits {
		o.Limits = append(o.Limits, weir.MustParseLimit(l))
	}
	return o
}

// traffic is a time for each of some requests of a few clients, in order, in bursts.
func traffic(seed uint64, n int) (times []time.Time, clients []string) {
	random := rand.New(rand.NewPCG(seed, 1))
	at := start
	for range n {
		if random.IntN(3) == 0 {
			at = at.Add(time.Duration(random.IntN(10)) * time.Second)
		}
		times = append(times, at)
		clients = append(clients, fmt.Sprintf("192.0.2.%d", random.IntN(5)))
	}
	return times, clients
}

// tokensDenied counts by hand whom a bucket of burst tokens, count more each minute, would deny.
func tokensDenied(times []time.Time, clients []string, count, burst, cost int64) map[string]int64 {
	denied, tokens, seen := map[string]int64{}, map[string]*big.Rat{}, map[string]time.Time{}
	full, price := big.NewRat(burst, 1), big.NewRat(cost, 1)
	for i, c := range clients {
		if tokens[c] == nil {
			tokens[c] = new(big.Rat).Set(full)
			seen[c] = times[i]
		}
		gained := big.NewRat(int64(times[i].Sub(seen[c]))*count, int64(time.Minute))
		seen[c] = times[i]
		if tokens[c].Add(tokens[c], gained); tokens[c].Cmp(full) > 0 {
			tokens[c].Set(full)
		}
		if tokens[c].Cmp(price) >= 0 {
			tokens[c].Sub(tokens[c], price)
		} else {
			denied[c]++
		}
	}
	return denied
}

// logDenied counts by hand whom a log of the last period would deny.
func logDenied(times []time.Time, clients []string, count int, period time.Duration) map[string]int64 {
	denied, admitted := map[string]int64{}, map[string][]time.Time{}
	for i, c := range clients {
		recent := 0
		for _, at := range admitted[c] {
			if times[i].Sub(at) < period {
				recent++
			}
		}
		if recent < count {
			admitted[c] = append(admitted[c], times[i])
		} else {
			denied[c]++
		}
	}
	return denied
}

func checkDenied(t *testing.T, l replay.LimitReport, want map[string]int64) {
	t.Helper()
	var sum int64
	for _, n := range want {
		sum += n
	}
	if l.Denied != sum || l.ClientsDenied != int64(len(want)) || sum == 0 {
		t.Errorf("%s: %d denied of %d clients, want %d of %d", l.Limit, l.Denied, l.ClientsDenied, sum, len(want))
	}
	for _, c := range l.Top {
		if c.Denied != want[c.Client[0]] {
			t.Errorf("%s: %s denied %d times, want %d", l.Limit, c.Client, c.Denied, want[c.Client[0]])
		}
	}
}

func TestVerdictsEqualThoseCountedByHand(t *testing.T) {
	for seed := range uint64(20) {
		times, clients := traffic(seed, 500)
		var log strings.Builder
		for i, at := range times {
			log.WriteString(entry(clients[i], at))
		}
		r := run(t, options("7/1m", "7/1m burst=3", "sliding-log 7/1m"), log.String())
		checkDenied(t, r.Limits[0], tokensDenied(times, clients, 7, 7, 1))
		checkDenied(t, r.Limits[1], tokensDenied(times, clients, 7, 3, 1))
		checkDenied(t, r.Limits[2], logDenied(times, clients, 7, time.Minute))
		o := options("20/1m")
		o.Cost = 3
		checkDenied(t, run(t, o, log.String()).Limits[0], tokensDenied(times, clients, 20, 20, 3))
	}
}

func TestDisorderWithinTheWindowChangesNoVerdict(t *testing.T) {
	times, clients := traffic(7, 1000)
	lines := make([]string, len(times))
	for i, at := range times {
		lines[i] = entry(clients[i], at)
	}
	sorted := run(t, options("7/1m"), strings.Join(lines, ""))
	random := rand.New(rand.NewPCG(1, 2))
	for from := 0; from < len(lines); { // shuffle what falls in one minute
		to := from
		for to < len(lines) && times[to].Sub(times[from]) < time.Minute {
			to++
		}
		part := lines[from:to]
		random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		from = to
	}
	shuffled := run(t, options("7/1m"), strings.Join(lines, ""))
	if shuffled.Late.Requests != 0 || shuffled.Requests != 1000 {
		t.Errorf("%d requests, %d late", shuffled.Requests, shuffled.Late.Requests)
	}
	if a, b := fmt.Sprintf("%+v", sorted.Limits), fmt.Sprintf("%+v", shuffled.Limits); a != b {
		t.Errorf("sorted   %s\nshuffled %s", a, b)
	}
	if a, b := fmt.Sprintf("%+v", sorted.Timeline), fmt.Sprintf("%+v", shuffled.Timeline); a != b {
		t.Errorf("sorted   %s\nshuffled %s", a, b)
	}
}

func TestALateRequestIsCountedAtTheNewestTimeSeen(t *testing.T) {
	o := options("1/1m")
	// In order, 0 and 70 would both pass; at 75 the one of 0 finds the minute used.
	r := run(t, o, after(70)+after(75)+after(0))
	if r.Requests != 3 || r.Late.Requests != 1 || r.Late.FurthestSeconds != 75 || r.Logs[0].Late != 1 {
		t.Errorf("%d requests, %+v, %+v", r.Requests, r.Late, r.Logs)
	}
	if l := r.Limits[0]; l.Denied != 2 || !l.Top[0].Last.Equal(start.Add(75*time.Second)) {
		t.Errorf("%+v", l)
	}
	if !r.First.Equal(start) || !r.Last.Equal(start.Add(75*time.Second)) {
		t.Errorf("%v to %v", r.First, r.Last)
	}
	o.Window = 2 * time.Minute
	if r := run(t, o, after(70)+after(75)+after(0)); r.Late.Requests != 0 || r.Limits[0].Denied != 1 {
		t.Errorf("in a wider window: %+v, %+v", r.Late, r.Limits)
	}
}

func TestALineDatedFarAheadChangesNoVerdictOfTheOthers(t *testing.T) {
	times, clients := traffic(5, 500)
	o := options("7/1m")
	wrong := entry("wrong", time.Date(2051, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, place := range []int{0, 1, 250, 498} {
		var log strings.Builder
		for i, at := range times {
			if i == place {
				log.WriteString(wrong)
			}
			log.WriteString(entry(clients[i], at))
		}
		r := run(t, o, "nonsense\n"+log.String())
		checkDenied(t, r.Limits[0], tokensDenied(times, clients, 7, 7, 1))
		if r.Requests != 501 || r.Late.Requests != 0 || r.Ahead.Requests != 1 || r.Logs[0].Ahead != 1 || !r.Last.Equal(times[499]) {
			t.Fatalf("%d requests to %v, %+v late, %+v ahead", r.Requests, r.Last, r.Late, r.Ahead)
		}
		a := r.Ahead.Shown[0]
		if a.Log != "log0" || a.Line != int64(place)+2 || a.Time.Year() != 2051 || a.Newest.After(times[max(place-1, 0)]) {
			t.Errorf("line %d: %+v", place+2, a)
		}
	}
}

func TestTheLineThatMadeOthersLateIsNamed(t *testing.T) {
	r := run(t, options("1/1m"), after(500), after(0)+strings.Repeat(after(900), 3)+strings.Repeat(after(1), 2)+strings.Repeat(after(900), 9))
	if len(r.Late.Shown) != 2 || r.Ahead.Requests != 0 {
		t.Fatalf("%+v late, %+v ahead", r.Late, r.Ahead)
	}
	l := r.Late.Shown[0]
	if l.Log != "log1" || l.Line != 5 || l.NewestLine != 2 || !l.Newest.Equal(start.Add(900*time.Second)) || !l.Time.Equal(start.Add(time.Second)) {
		t.Errorf("%+v", l)
	}
	r = run(t, options("1/1m"), after(900)+after(900)+strings.Repeat(after(1), 2)+strings.Repeat(after(900), 12)+strings.Repeat(after(1), 9))
	if r.Late.Requests != 11 || len(r.Late.Shown) != 5 {
		t.Errorf("%+v", r.Late)
	}
}

func TestLogsAreMergedByTimeInWhateverOrderTheyAreGiven(t *testing.T) {
	times, clients := traffic(3, 900)
	parts := make([]string, 6) // three rotated logs of two servers
	for i, at := range times {
		parts[i/300*2+i%2] += entry(clients[i], at)
	}
	want := tokensDenied(times, clients, 7, 7, 1)
	for range 2 {
		r := run(t, options("7/1m"), parts...)
		if r.Requests != 900 || r.Late.Requests != 0 || len(r.Logs) != 6 {
			t.Errorf("%d requests, %d late, %d logs", r.Requests, r.Late.Requests, len(r.Logs))
		}
		checkDenied(t, r.Limits[0], want)
		slices.Reverse(parts)
	}
}

func TestKeysTellClientsApart(t *testing.T) {
	log := `a - u [17/May/2015:10:05:00 +0000] "GET /x?1 HTTP/1.1" 200 5 "-" "p"
a - - [17/May/2015:10:05:00 +0000] "POST /x?2 HTTP/1.1" 200 5 "-" "p"
b - - [17/May/2015:10:05:00 +0000] "GET /y HTTP/1.1" 200 5
`
	for key, want := range map[string][2]int64{ // clients, requests without the key
		"client_ip": {2, 0}, "user": {2, 2}, "method": {2, 0}, "path": {2, 0}, "host": {1, 3}, "user-agent": {2, 1},
		"client_ip,path": {2, 0}, "client_ip,method": {3, 0}, "user,user-agent": {3, 2},
	} {
		o := options("1/1m")
		var err error
		if o.Key, err = replay.ParseKey(key); err != nil {
			t.Fatal(err)
		}
		if r := run(t, o, log); r.Clients != want[0] || r.WithoutKey != want[1] || r.Limits[0].Denied != 3-want[0] {
			t.Errorf("%s: %d clients, %d without, %d denied; want %v", key, r.Clients, r.WithoutKey, r.Limits[0].Denied, want)
		}
	}
}

func TestEqualLimitsSideBySideDoNotShareTheirState(t *testing.T) {
	r := run(t, options("1/1m", "1/1m"), after(0)+after(0))
	if r.Limits[0].Denied != 1 || r.Limits[1].Denied != 1 {
		t.Errorf("%+v", r.Limits)
	}
}

func TestTheLeakyQueueReportsItsWaits(t *testing.T) {
	r := run(t, options("leaky-queue 1/1s queue=2"), after(0)+after(0)+after(0)+after(0))
	if l := r.Limits[0]; l.Denied != 1 || l.Delayed != 2 || l.LongestDelayUS != 2_000_000 {
		t.Errorf("%+v", l)
	}
}

func TestLogsOfAnyYearAreReplayed(t *testing.T) {
	for _, year := range []int{1970, 1999, 2020, 2073} {
		at := time.Date(year, 12, 31, 23, 59, 59, 0, time.UTC)
		var limits []string
		for _, algorithm := range []weir.Algorithm{
			weir.TokenBucket, weir.GCRA, weir.LeakyBucket, weir.Cooldown, weir.RefillBucket, weir.FixedWindow,
			weir.QuotaReset, weir.SlidingLog, weir.SlidingWindow, weir.SlidingBuckets, weir.Hybrid, weir.Exponential,
		} {
			limits = append(limits, string(algorithm)+" 3/1m", string(algorithm)+" 7/1m")
		}
		r := run(t, options(limits...), strings.Repeat(entry("c", at), 20))
		for _, l := range r.Limits {
			if want := 20 - l.Limit.Count; l.Denied != want {
				t.Errorf("%d: %s denied %d, want %d", year, l.Limit, l.Denied, want)
			}
		}
	}
}

func TestClientsAreRankedByDenialsThenRequestsThenName(t *testing.T) {
	var log strings.Builder
	for _, c := range []string{"d", "d", "d", "d", "c", "c", "c", "b", "b", "a", "a"} {
		log.WriteString(entry(c, start))
	}
	log.WriteString(entry("b", start.Add(time.Hour))) // b has as many denials as a, and more requests
	o := options("1/1m")
	o.Top = 3
	var got []string
	for _, c := range run(t, o, log.String()).Limits[0].Top {
		got = append(got, c.Client[0])
	}
	if want := []string{"d", "c", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	o.Top = 4
	if top := run(t, o, entry("b", start)+entry("b", start)+entry("a", start)+entry("a", start)).Limits[0].Top; top[0].Client[0] != "a" {
		t.Errorf("%+v", top)
	}
}

func TestMoreClientsThanTheMostAreAnError(t *testing.T) {
	o := options("1/1m")
	o.MaxClients = 2
	ok := entry("a", start) + entry("b", start)
	if r := run(t, o, ok); r.Clients != 2 || r.Limits[0].Denied != 0 {
		t.Errorf("%+v", r)
	}
	_, err := replay.Run(context.Background(), []replay.Log{{Name: "x", Reader: strings.NewReader(ok + entry("c", start))}}, o)
	if err == nil || !strings.Contains(err.Error(), "more than 2 clients") {
		t.Error(err)
	}
}

func TestACancelledRunEndsWithItsCause(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := replay.Run(ctx, []replay.Log{{Name: "x", Reader: strings.NewReader(after(0))}}, options("1/1m"))
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, change := range map[string]func(*replay.Options){
		"number of limits is 0":    func(o *replay.Options) { o.Limits = nil },
		"number of limits is 33":   func(o *replay.Options) { o.Limits = slices.Repeat(o.Limits, 33) },
		"count 0":                  func(o *replay.Options) { o.Limits = []weir.Limit{{Period: 1}} },
		"cost is -1":               func(o *replay.Options) { o.Cost = -1 },
		"cost is 2":                func(o *replay.Options) { o.Cost = 2 },
		"window is 24h0m1s":        func(o *replay.Options) { o.Window = 24*time.Hour + time.Second },
		"window is -1s":            func(o *replay.Options) { o.Window = -time.Second },
		"top is 100001":            func(o *replay.Options) { o.Top = 100_001 },
		"bucket is 1.5s":           func(o *replay.Options) { o.Bucket = 1500 * time.Millisecond },
		"max-clients is -1":        func(o *replay.Options) { o.MaxClients = -1 },
		"bucket is 1s, which make": func(o *replay.Options) { o.Bucket = time.Second },
	} {
		o := options("1/1m")
		change(&o)
		log := replay.Log{Name: "x", Reader: strings.NewReader(after(0) + after(20_000))}
		_, err := replay.Run(context.Background(), []replay.Log{log}, o)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("%s: %v", want, err)
		}
	}
}
