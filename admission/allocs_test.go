package admission_test

import (
	"testing"

	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
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
