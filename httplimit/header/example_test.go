package header_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
)

// Every limit that a request must pass is told, in order.
func ExampleFormats_Write() {
	h := http.Header{}
	(header.Draft11 | header.XRateLimit).Write(h, []admission.Standing{
		{Name: "burst", Limit: weir.MustParseLimit("100/1m"), Decision: weir.Decision{Allowed: true, Limit: 100, Remaining: 40, ResetAfter: 36 * time.Second}},
		{Name: "daily", Limit: weir.MustParseLimit("calendar 5000/day"), Decision: weir.Decision{Allowed: true, Limit: 5000, Remaining: 900, ResetAfter: 10 * time.Hour}},
	}, time.Now())
	for _, name := range []string{"RateLimit-Policy", "RateLimit", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		fmt.Println(name+":", h.Get(name))
	}
	// Output:
	// RateLimit-Policy: "burst";q=100;w=60, "daily";q=5000;w=86400
	// RateLimit: "burst";r=40;t=24, "daily";r=900;t=36000
	// X-RateLimit-Limit: 100
	// X-RateLimit-Remaining: 40
	// X-RateLimit-Reset: 36
}

// A program that writes many answers makes what stays the same once.
func ExampleOf() {
	line := header.Of("api", weir.MustParseLimit("10/1s"))
	field := make([]byte, 0, line.Size())
	field = line.Append(field, &weir.Decision{Allowed: true, Remaining: 7})
	fmt.Println("RateLimit-Policy:", line.Policy())
	fmt.Printf("RateLimit: %s\n", field)
	// Output:
	// RateLimit-Policy: "api";q=10;w=1
	// RateLimit: "api";r=7;t=1
}

// A fraction of a second is a whole one, and none is one too: nobody is asked to come back at once.
func ExampleRetryAfter() {
	fmt.Println(header.RetryAfter(0), header.RetryAfter(1500*time.Millisecond))
	// Output: 1 2
}

func ExampleFormats_Err() {
	fmt.Println((header.XRateLimit | header.XRateLimitUnix).Err())
	// Output: header: formats are 0b110; accepted: Draft11, XRateLimit or XRateLimitUnix, Draft11 with either, or None
}

// A client finds out how long to wait, and what is left.
func ExampleRead() {
	report := header.Read(http.Header{
		"Retry-After":      {"30"},
		"Ratelimit-Policy": {`"burst";q=100;w=60, "daily";q=5000;w=86400`},
		"Ratelimit":        {`"burst";r=0;t=24, "daily";r=900;t=36000`},
	}, time.Now())
	fmt.Println(report.Retry, report.RetryAfter)
	for _, s := range report.Limits {
		fmt.Printf("%s: %d of %d left for %v\n", s.Name, s.Remaining, s.Quota, s.Within)
	}
	// Output:
	// true 30s
	// burst: 0 of 100 left for 24s
	// daily: 900 of 5000 left for 10h0m0s
}

func ExampleExhausted() {
	h := http.Header{"Ratelimit": {`"burst";r=0;t=4, "daily";r=0;t=3600`, `"calls";r=9;t=7200`}}
	fmt.Println(header.Exhausted(h))
	// Output: 1h0m0s
}
