package policy_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// refusable are clients of whom one has a plan that may not be there.
type refusable string

func (r refusable) Grant(string) (*policy.Grant, bool) { return &policy.Grant{Plan: string(r)}, true }

func (r refusable) Grants(f func(*policy.Grant) error) error {
	return f(&policy.Grant{Plan: string(r)})
}

// What is refused is offered again and again, and said once for each reason.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	config, err := policy.Parse([]byte("policies: [{name: a, key: [client_ip], limits: [1/1s], plans: {gold: [2/1s]}}]"), "")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	set, err := policy.New(config, policy.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for i, plan := range []refusable{"silver", "silver", "bronze", "bronze", "gold", "silver"} {
		err := set.UseClients(plan)
		if refused := plan != "gold"; (err != nil) != refused || !errors.Is(err, set.Status().Clients.Err) {
			t.Errorf("offer %d, %s: %v, status %v", i, plan, err, set.Status().Clients.Err)
		}
	}
	if n := strings.Count(log.String(), "refused"); n != 3 {
		t.Errorf("said %d times, want 3: %s", n, &log)
	}
}
