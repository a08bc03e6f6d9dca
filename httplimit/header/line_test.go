package header

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"pgregory.net/rapid"

	"github.com/weirlimit/weir"
)

func TestPolicy(t *testing.T) {
	for _, test := range []struct{ name, limit, want string }{
		{"api", "100/1m", `"api";q=100;w=60`},
		{"", "100/1m", `"";q=100;w=60`},
		{"gcra 10/1s burst=20", "gcra 10/1s burst=20", `"gcra 10/1s burst=20";q=10;w=1`},
		{"half a second", "10/500ms", `"half a second";q=10`},
		{"and a half", "10/1500ms", `"and a half";q=10`},
		{"uploads", "concurrent 10 lease=30s", `"uploads";q=10;qu="concurrent-requests"`},
		{"plan", "calendar 10000/month", `"plan";q=10000;w=2592000`},
		{"plan", "calendar 500/day tz=Europe/Berlin", `"plan";q=500;w=86400`},
		{"large", "fixed-window 9223372036854775807/1h", `"large";q=999999999999999;w=3600`},
		{`a "b" \c`, "1/1s", `"a \"b\" \\c";q=1;w=1`},
		{"caf\u00e9\r\nSet-Cookie: a=b\x7f", "1/1s", `"caf%C3%A9%0D%0ASet-Cookie: a=b%7F";q=1;w=1`},
	} {
		if got := Of(test.name, weir.MustParseLimit(test.limit)).Policy(); got != test.want {
			t.Errorf("%q, %s: %s, want %s", test.name, test.limit, got, test.want)
		}
	}
}

func TestAppend(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, test := range []struct {
		limit string
		d     weir.Decision
		want  string
	}{
		// Units that come back one by one: as long as what remains takes to come back.
		{"100/1m", weir.Decision{Allowed: true, Remaining: 99, ResetAfter: 600 * ms}, "r=99;t=60"},
		{"100/1m", weir.Decision{Allowed: true, Remaining: 1, ResetAfter: 59 * s}, "r=1;t=1"},
		{"100/1m burst=10", weir.Decision{Allowed: true, Remaining: 9, ResetAfter: 600 * ms}, "r=9;t=6"},
		{"3/1s", weir.Decision{Allowed: true, Remaining: 3}, "r=3;t=1"},
		{"3/1m", weir.Decision{Allowed: true, Remaining: 2, ResetAfter: 20 * s}, "r=2;t=40"},
		{"7/10s", weir.Decision{Allowed: true, Remaining: 5, ResetAfter: 3 * s}, "r=5;t=8"},
		{"1/1h", weir.Decision{Allowed: true, Remaining: 1}, "r=1;t=3600"},
		{"2000000001/2s", weir.Decision{Allowed: true, Remaining: 1000000001}, "r=1000000001;t=2"}, // half a nanosecond more than a second
		// Nothing is left: until the next unit, which is not the interval if part of that is over.
		{"1/1m", weir.Decision{Allowed: true, ResetAfter: 60 * s}, "r=0;t=60"},
		{"1/1m burst=2", weir.Decision{Allowed: true, ResetAfter: 90 * s}, "r=0;t=30"},
		{"min-interval 1/10s", weir.Decision{Allowed: true, ResetAfter: 10 * s}, "r=0;t=10"},
		{"leaky-queue 1/10s queue=2", weir.Decision{Allowed: true, ResetAfter: 30 * s, Delay: 20 * s}, "r=0;t=10"},
		// That is soon: also in milliseconds, rounded up, of a limit whose units come back twice a second, or more often.
		{"20/1s burst=1", weir.Decision{Allowed: true, ResetAfter: 50 * ms}, "r=0;t=1;weir-ms=50"},
		{"20/1s burst=2", weir.Decision{Allowed: true, ResetAfter: 70*ms + 1}, "r=0;t=1;weir-ms=21"},
		{"2/1s burst=1", weir.Decision{Allowed: true, ResetAfter: 500 * ms}, "r=0;t=1;weir-ms=500"},
		{"10/5001ms burst=1", weir.Decision{Allowed: true, ResetAfter: 400 * ms}, "r=0;t=1"},
		{"fixed-window 5/1s", weir.Decision{Allowed: true, ResetAfter: 999 * ms}, "r=0;t=1;weir-ms=999"},
		{"fixed-window 5/1s", weir.Decision{Allowed: true, ResetAfter: 999*ms + 1}, "r=0;t=1"},
		{"fixed-window 50/10s", weir.Decision{Allowed: true, ResetAfter: 7 * s}, "r=0;t=7"},
		{"20/1s burst=2", weir.Decision{Allowed: true, Remaining: 1, ResetAfter: 50 * ms}, "r=1;t=1"},
		{"20/1s burst=1", weir.Decision{RetryAfter: 30 * ms, ResetAfter: 30 * ms}, "r=0;t=1;weir-ms=30"},
		{"sliding-log 5/1s", weir.Decision{Allowed: true, ResetAfter: 2 * ms}, "r=0;t=1;weir-ms=2"},
		{"fixed-window 5/1s", weir.Decision{Allowed: true, ResetAfter: 1}, "r=0;t=1;weir-ms=1"},
		{"10/1s", weir.Decision{Allowed: true}, "r=0;t=1"},
		// Windows: until they end.
		{"fixed-window 1000/1h", weir.Decision{Allowed: true, Remaining: 9, ResetAfter: 90*s + 1}, "r=9;t=91"},
		{"quota-reset 1000/1h", weir.Decision{Allowed: true, Remaining: 9, ResetAfter: 90 * s}, "r=9;t=90"},
		{"calendar 10/month", weir.Decision{Allowed: true, Remaining: 9, ResetAfter: 31 * 24 * 3600 * s}, "r=9;t=2678400"},
		{"sliding-window 100/1m", weir.Decision{Allowed: true, Remaining: 9, ResetAfter: 100 * s}, "r=9;t=61"},
		{"sliding-window 2/666666667ns", weir.Decision{Allowed: true, Remaining: 1, ResetAfter: 2 * s}, "r=1;t=2"}, // half a nanosecond more than a second
		{"refill-bucket 50/24h burst=200", weir.Decision{Allowed: true, Remaining: 10, ResetAfter: 4 * 24 * 3600 * s}, "r=10;t=86400"},
		{"refill-bucket 50/24h burst=200", weir.Decision{Allowed: true, Remaining: 175, ResetAfter: 24 * 3600 * s}, "r=175;t=302400"},
		// Of what is held nobody knows when it comes back.
		{"concurrent 10 lease=30s", weir.Decision{Allowed: true, Remaining: 3, ResetAfter: 30 * s}, "r=3"},
		{"concurrent 10 lease=30s", weir.Decision{RetryAfter: 3 * s, ResetAfter: 30 * s}, "r=0"},
		// Denied: what is left may be more than nothing, for a request that costs less.
		{"100/1m", weir.Decision{RetryAfter: 1500 * ms, Remaining: 7, ResetAfter: 55 * s}, "r=7;t=2"},
		{"fixed-window 10/1h", weir.Decision{RetryAfter: 1, ResetAfter: 1}, "r=0;t=1"},
		{"10/1s", weir.Decision{RetryAfter: weir.Never, Remaining: 10}, "r=10"},
		// Decisions that make no sense do no harm.
		{"10/1s", weir.Decision{Allowed: true, Remaining: -1, ResetAfter: -1}, "r=0;t=1"},
		{"1/1h", weir.Decision{Allowed: true, Remaining: math.MaxInt64}, "r=999999999999999;t=9223372037"},
	} {
		line := Of("n", weir.MustParseLimit(test.limit))
		if got := string(line.Append(nil, &test.d)); got != `"n";`+test.want {
			t.Errorf("%s: %s, want %s", test.limit, got, test.want)
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	line := Of("name", weir.MustParseLimit("7/1s"))
	d := weir.Decision{Allowed: true, Remaining: math.MaxInt64, ResetAfter: math.MaxInt64}
	buf := make([]byte, 0, line.Size())
	if n := testing.AllocsPerRun(100, func() { line.Append(buf, &d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The draft asks that a server does not expose an unwanted volume: what remains over its window is never more than the count over the period.
func TestRateNeverAboveTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := weir.Limit{
			Algorithm: rapid.SampledFrom([]weir.Algorithm{weir.TokenBucket, weir.GCRA, weir.LeakyBucket, weir.LeakyQueue, weir.Cooldown, weir.RefillBucket}).Draw(t, "algorithm"),
			Count:     rapid.Int64Range(1, math.MaxInt64).Draw(t, "count"),
			Period:    time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "period")),
		}
		d := weir.Decision{Allowed: true, Remaining: rapid.Int64Range(1, math.MaxInt64).Draw(t, "remaining")}
		w := windowOf(&limit)
		within := w.seconds(&d)
		// Exactly: ⌈remaining·period/count⌉ in seconds, unless that is longer than Durations are.
		ns := new(big.Int).Mul(big.NewInt(d.Remaining), big.NewInt(int64(limit.Period)))
		span := ceilDiv(ns, new(big.Int).Mul(big.NewInt(limit.Count), big.NewInt(int64(time.Second))))
		if longest := seconds(weir.Never); span.Cmp(big.NewInt(longest)) > 0 {
			span.SetInt64(longest)
		}
		if big.NewInt(within).Cmp(span) != 0 {
			t.Errorf("%d of %d per %d ns: window %d s, want %v", d.Remaining, limit.Count, limit.Period, within, span)
		}
	})
}

func ceilDiv(a, b *big.Int) *big.Int {
	q, m := new(big.Int).DivMod(a, b, new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// What is written is a list as RFC 9651 would have it, to the byte, and no longer than Size says.
func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		limit := anyLimit(t)
		d := weir.Decision{
			Allowed: rapid.Bool().Draw(t, "allowed"), Remaining: rapid.Int64().Draw(t, "remaining"),
			RetryAfter: time.Duration(rapid.Int64().Draw(t, "retry")), ResetAfter: time.Duration(rapid.Int64().Draw(t, "reset")),
		}
		line := Of(name, limit)
		member := string(line.Append(nil, &d))
		if len(member) > line.Size() {
			t.Errorf("%q has %d bytes, more than %d", member, len(member), line.Size())
		}
		for _, text := range []string{line.Policy(), member} {
			list, err := httpsfv.UnmarshalList([]string{text})
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if again, err := httpsfv.Marshal(list); err != nil || again != text {
				t.Errorf("%q is canonically %q, %v", text, again, err)
			}
		}
	})
}

func anyLimit(t *rapid.T) weir.Limit {
	text := rapid.SampledFrom([]string{
		"7/10s", "10/500ms", "20/1s burst=1", "1/1h burst=3", "gcra 3/1s burst=9", "leaky-bucket 4/1m", "cooldown 3/1m", "min-interval 2/7s", "leaky-queue 4/9s queue=3",
		"refill-bucket 5/20s burst=12", "fixed-window 5/9s", "quota-reset 5/9s", "sliding-log 4/11s", "sliding-window 6/10s", "sliding-buckets 5/10s cells=3",
		"hybrid 5/10s", "exponential 6/20s", "exponential 1/20s", "calendar 3/day", "concurrent 3 lease=9s",
	}).Draw(t, "limit")
	return weir.MustParseLimit(text)
}

// Who is told that nothing is left, and waits for as long as it is told, has room for a request: of every algorithm, whatever came before.
func TestWindowOfNothingIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimit(t)
		if limit.Algorithm == weir.Concurrent {
			return
		}
		limiter, err := weir.New(limit)
		if err != nil {
			t.Fatal(err)
		}
		line, now := Of("n", limit), time.Unix(1_800_000_000, 0)
		for range 40 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "idle")))
			d, err := limiter.TakeAt(t.Context(), "k", rapid.Int64Range(1, 3).Draw(t, "cost"), now)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Allowed || d.Remaining > 0 {
				continue
			}
			list, err := httpsfv.UnmarshalList([]string{string(line.Append(nil, &d))})
			if err != nil {
				t.Fatal(err)
			}
			params := list[0].(httpsfv.Item).Params
			within, _ := params.Get("t")
			wait := bounded(within.(int64))
			if ms, exact := params.Get("weir-ms"); exact && rapid.Bool().Draw(t, "exact") {
				wait = time.Millisecond * time.Duration(ms.(int64)) //nolint:durationcheck // it is a number
			}
			now = now.Add(wait)
			if d, err := limiter.TakeAt(t.Context(), "k", 1, now); err != nil || !d.Allowed {
				t.Fatalf("%v: after %v: %+v, %v", limit, wait, d, err)
			}
		}
	})
}

// Pitfall H1: Retry-After is whole seconds, rounded up, and never 0.
func TestH1RetryAfter(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "1", 0: "1", 1: "1", time.Second - 1: "1", time.Second: "1", time.Second + 1: "2", 500 * time.Millisecond: "1", 90 * time.Second: "90",
		weir.Never - 1: "9223372037", weir.Never: "",
	} {
		got := RetryAfter(d)
		if got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
		if strings.Trim(got, "0123456789") != "" {
			t.Errorf("%q is not of digits", got)
		}
	}
}
