package admission_test

import (
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
)

func BenchmarkTake(b *testing.B) {
	l := limiter(b, "1000000000/1s")
	ctx := request("/").Context()
	for b.Loop() {
		if _, err := l.Take(ctx, peer, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdmit(b *testing.B) {
	g := gate(b, limiter(b, "1000000000/1s"), admission.Options{})
	r := request("/")
	for b.Loop() {
		if a := g.Admit(r); !a.Outcome.Pass() {
			b.Fatal(a.Outcome)
		}
	}
}

func BenchmarkAdmitAndEach(b *testing.B) {
	g := gate(b, limiter(b, "1000000000/1s"), admission.Options{})
	r := request("/")
	told := 0
	for b.Loop() {
		a := g.Admit(r)
		for s := range a.Each() {
			told += len(s.Name)
		}
	}
}

func BenchmarkAdmitByPolicies(b *testing.B) {
	g := gate(b, policies(b, "policies: [{name: p, key: [client_ip], limits: [1000000000/1s]}]", policy.Options{}), admission.Options{})
	r := request("/")
	for b.Loop() {
		g.Admit(r)
	}
}

func BenchmarkChargeOnResponse(b *testing.B) {
	g := gate(b, limiter(b, "1000000000/1s", weir.WithName("n")), admission.Options{Charge: admission.Successes})
	r := request("/")
	for b.Loop() {
		a := g.Admit(r)
		a.Finish(status(200))
	}
}

func BenchmarkLease(b *testing.B) {
	g := gate(b, limiter(b, "concurrent 5 lease=30s"), admission.Options{})
	r := request("/")
	for b.Loop() {
		a := g.Admit(r)
		a.Finish(status(200))
	}
}
