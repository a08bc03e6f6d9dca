package admission_test

import (
	"testing"

	"github.com/weirlimit/weir/admission"
)

// The zero Gate has no limits, and refuses all requests.
func TestGateWithoutLimits(t *testing.T) {
	for name, g := range map[string]*admission.Gate{"nil": nil, "zero": {}} {
		a := g.Admit(request("/"))
		if a.Outcome != admission.Undecided || a.Err == nil || a.Decision.Allowed || a.Decision.RetryAfter <= 0 || a.Held() {
			t.Errorf("%s Gate: %v, %+v, %v", name, a.Outcome, a.Decision, a.Err)
		}
		for s := range a.Each() {
			t.Errorf("%s Gate: %v", name, s)
		}
		a.Finish(admission.Response{})
	}
}
