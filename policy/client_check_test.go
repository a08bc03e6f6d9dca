package policy_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// ClientCheck refuses the clients that make UseClients fail, and accepts all further clients.
func TestClientCheck(t *testing.T) {
	one := newSet(t, `
policies:
  - {name: api, key: ["header:X-API-Key"], limits: [5/1h], plans: {gold: [9/1h]}}
  - {name: all, key: all, limits: [5/1h]}
`, policy.Options{})
	two := newSet(t, `
policies:
  - {name: api, key: ["header:X-API-Key"], limits: [5/1h], plans: {gold: [9/1h]}}
  - {name: address, key: [client_ip], limits: [5/1h], plans: {gold: [9/1h]}}
`, policy.Options{})
	for _, c := range []struct {
		set    *policy.Set
		client string
		grant  *policy.Grant
		want   string // "": it is accepted
	}{
		{one, "acme", plan("gold"), ""},
		{one, "acme", own("", "7/1h"), ""},
		{one, "acme", own("api", "7/1h"), ""},
		{one, "acme", plan("gould"), "plan \"gould\" is of no policy; accepted: gold"},
		{one, "acme", own("apis", "7/1h"), "which is no policy; accepted: all, api"},
		{one, "acme", own("all", "7/1h"), "which knows no clients"},
		{two, "header:X-Api-Key=acme", plan("gold"), ""},
		{two, "acme", plan("gold"), "the client is named by a value alone"},
	} {
		err := c.set.ClientCheck()(c.client, c.grant)
		used := c.set.UseClients(staticClients{c.client: c.grant})
		if c.want == "" && (err != nil || used != nil) {
			t.Errorf("%s, %+v: %v, %v", c.client, c.grant, err, used)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "acme")) {
			t.Errorf("%s, %+v: %v, want %s", c.client, c.grant, err, c.want)
		}
	}
	// The function remembers its results by grant, and each has its own.
	check, good, bad := one.ClientCheck(), plan("gold"), plan("gould")
	for range 2 {
		if check("a", good) != nil || check("b", bad) == nil {
			t.Error("the second result is another than the first")
		}
	}
}
