package admission_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store/memory"
)

// Of a request that policies let pass the key is allocated, and what stands for each limit. Nothing else is.
func TestWhatAdmissionByPoliciesAllocates(t *testing.T) {
	g := gate(t, policies(t, "policies: [{name: p, match: {method: GET}, key: [client_ip], limits: [1000000000/1s]}]", policy.Options{}), admission.Options{})
	r := request("/")
	told := 0
	n := testing.AllocsPerRun(200, func() {
		a := g.Admit(r)
		for s := range a.Each() {
			told += len(s.Name)
		}
		a.Finish(admission.Response{})
	})
	if n > 2 || told == 0 {
		t.Errorf("%v allocations for each request, want at most 2", n)
	}
}

// The texts of the limits of many plans are not written for each request.
func TestTextsOfManyLimits(t *testing.T) {
	const plans = 3000
	limiters := make([]*weir.Limiter, plans)
	s := memory.New(memory.Options{})
	for i := range limiters {
		l, err := weir.New(weir.Limit{Algorithm: weir.TokenBucket, Count: 1e9 + int64(i), Period: time.Second}, weir.WithStore(s))
		if err != nil {
			t.Fatal(err)
		}
		limiters[i] = l
	}
	next := 0
	g := gate(t, limiters[0], admission.Options{Override: func(*http.Request) *weir.Limiter {
		next++
		return limiters[next%plans]
	}})
	r := request("/")
	admit := func() {
		a := g.Admit(r)
		for s := range a.Each() {
			if want := limiters[next%plans].Limit().String(); s.Name != want || s.Limit.String() != want {
				t.Fatalf("%s is called %s", want, s.Name)
			}
		}
	}
	for range plans { // all keys are in the store
		admit()
	}
	if n := testing.AllocsPerRun(200, func() {
		a := g.Admit(r)
		for s := range a.Each() {
			if s.Name == "" {
				t.Fatal("a limit without a name")
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations for each request", n)
	}
}
