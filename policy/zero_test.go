package policy_test

import (
	"testing"

	"github.com/weirlimit/weir/policy"
)

// A Set that New did not make has no policies. It allows nothing, and its methods return an error
// or nothing.
func TestSetWithoutPolicies(t *testing.T) {
	ctx, config := t.Context(), &policy.Config{}
	for name, s := range map[string]*policy.Set{"nil": nil, "zero": {}} {
		for method, call := range map[string]func() error{
			"Check": func() error {
				d, err := s.Check(ctx, &policy.Request{})
				if d.Allowed {
					t.Errorf("%s Set: Check allows", name)
				}
				return err
			},
			"Explain":    func() error { _, err := s.Explain(ctx, &policy.Request{}); return err },
			"Release":    func() error { return s.Release(ctx, "t") },
			"Commit":     func() error { return s.Commit(ctx, "t", 1) },
			"CommitLate": func() error { return s.CommitLate(ctx, "t", 1) },
			"Cancel":     func() error { return s.Cancel(ctx, "t") },
			"Renew":      func() error { _, err := s.Renew(ctx, "t"); return err },
			"Replace":    func() error { return s.Replace(config) },
			"UseClients": func() error { return s.UseClients(nil) },
			"Reload":     func() error { return s.Reload("weir.yaml") },
			"Follow":     func() error { return s.Follow(ctx, "weir.yaml") },
		} {
			if err := call(); err == nil {
				t.Errorf("%s Set: %s returns no error", name, method)
			}
		}
		if s.Config() != nil || s.Keys(&policy.Request{}) != nil || s.Stats() != nil || s.Warnings() != nil || s.Status().Policies != 0 {
			t.Errorf("%s Set: it has something", name)
		}
	}
}
