package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/store"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func get(path string) *http.Request { return httptest.NewRequest(http.MethodGet, path, nil) }

// A gate, as middleware for a framework uses it.
func Example() {
	gate := must(admission.New(must(weir.New(weir.MustParseLimit("fixed-window 2/24h"))), admission.Options{Name: "daily"}))
	handle := func(r *http.Request) int {
		a := gate.Admit(r)
		for s := range a.Each() {
			fmt.Printf("%s: %d of %d; ", s.Name, s.Decision.Remaining, s.Decision.Limit)
		}
		if !a.Outcome.Pass() {
			fmt.Print(a.Outcome.String(), " by ", slices.Collect(a.Violated()), "; ")
			return http.StatusTooManyRequests
		}
		if a.Held() {
			defer a.Finish(admission.Response{Status: http.StatusOK})
		}
		if err := a.Await(r.Context()); err != nil {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
	for range 3 {
		fmt.Println(handle(get("/")))
	}
	// Output:
	// daily: 1 of 2; 200
	// daily: 0 of 2; 200
	// daily: 0 of 2; denied by [daily]; 429
}

// Logins that fail are counted, and no more are under way than may fail.
func ExampleFailures() {
	logins := must(weir.New(weir.MustParseLimit("fixed-window 5/24h"), weir.WithName("logins")))
	gate := must(admission.New(logins, admission.Options{Charge: admission.Failures}))
	a := gate.Admit(get("/login"))
	fmt.Println(must(logins.Peek(context.Background(), "192.0.2.1")).Remaining, a.Held())
	a.Finish(admission.Response{Status: http.StatusNoContent})
	fmt.Println(must(logins.Peek(context.Background(), "192.0.2.1")).Remaining)

	failed, passed := admission.Response{Status: http.StatusUnauthorized, Bytes: 12}, admission.Response{Status: http.StatusOK, Bytes: 9000}
	fmt.Println(admission.Failures(nil, failed), admission.Failures(nil, passed))
	fmt.Println(admission.Successes(nil, failed), admission.Successes(nil, passed))
	fmt.Println(admission.Size(nil, failed), admission.Size(nil, passed))
	// Output:
	// 4 true
	// 5
	// 1 0
	// 0 1
	// 12 9000
}

// Two at once for each client; the lease is renewed for as long as a request takes.
func ExampleAdmission_Finish() {
	gate := must(admission.New(must(weir.New(weir.MustParseLimit("concurrent 2 lease=30s"))), admission.Options{}))
	first, second := gate.Admit(get("/")), gate.Admit(get("/"))
	fmt.Println(first.Outcome, second.Outcome, gate.Admit(get("/")).Outcome)
	first.Finish(admission.Response{})
	first.Finish(admission.Response{}) // does nothing
	third := gate.Admit(get("/"))
	fmt.Println(third.Outcome, third.Decision.Remaining)
	second.Finish(admission.Response{})
	third.Finish(admission.Response{})
	// Output:
	// admitted admitted denied
	// admitted 0
}

// A leaky queue has requests wait for their turn.
func ExampleAdmission_Await() {
	gate := must(admission.New(must(weir.New(weir.MustParseLimit("leaky-queue 1/1h"))), admission.Options{}))
	first, second := gate.Admit(get("/")), gate.Admit(get("/"))
	fmt.Println(first.Await(context.Background()), second.Decision.Delay.Round(time.Minute))
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the client goes
	fmt.Println(second.Await(ctx))
	// Output:
	// <nil> 1h0m0s
	// context canceled
}

func ExampleOptionError() {
	_, err := admission.New(must(weir.New(weir.MustParseLimit("5/1m"))), admission.Options{Charge: admission.Failures})
	fmt.Println(err)
	var wrong *admission.OptionError
	fmt.Println(errors.As(err, &wrong), wrong.Field, wrong.Error() == err.Error(), store.Local.String())
	// Output:
	// admission: Charge is for a limiter without a name; accepted: one that has a name, under which the estimate is kept: weir.WithName
	// true Charge true local
}
