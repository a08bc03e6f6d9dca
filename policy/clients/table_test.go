package clients_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

func TestTable(t *testing.T) {
	table, err := clients.NewTable(
		clients.Client{Name: "acme", Plan: "gold"},
		clients.Client{Name: "umbrella", Plan: "gold"},
		clients.Client{Name: "initech", Limits: limits("1000/1m")},
		clients.Client{Name: "hooli", Limits: limits("token-bucket 1000/60s")},
	)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := table.Grant("acme")
	b, _ := table.Grant("umbrella")
	c, _ := table.Grant("initech")
	d, _ := table.Grant("hooli")
	if table.Len() != 4 || a != b || c != d || a.Plan != "gold" || has(table, "initech") != "1000/1m" || has(table, "Acme") != "" || has(table, "") != "" {
		t.Errorf("%d clients; %+v, %+v, %+v, %+v", table.Len(), a, b, c, d)
	}
	n := 0
	if err := table.Grants(func(*policy.Grant) error { n++; return nil }); n != 2 || err != nil {
		t.Errorf("%d grants, %v", n, err)
	}
	err = table.Grants(func(g *policy.Grant) error { return fmt.Errorf("no %q here", g.Plan) })
	if err == nil || !strings.Contains(err.Error(), "client "+identity.Mask("acme")+`: no "gold" here`) {
		t.Error(err)
	}
}

func TestTablesThatAreRefused(t *testing.T) {
	acme := clients.Client{Name: "acme", Plan: "gold"}
	for want, all := range map[string][]clients.Client{
		" is there twice":          {acme, acme},
		"neither plan nor limits":  {acme, {Name: "umbrella"}},
		"a plan and limits":        {{Name: "acme", Plan: "gold", Limits: limits("1/1s")}},
		"1 to 1024 bytes":          {{Name: strings.Repeat("x", 1025), Plan: "gold"}},
		"1 to 1024 bytes of UTF-8": {{Name: "a\xff", Plan: "gold"}},
		"at most 64 bytes":         {{Name: "acme", Plan: strings.Repeat("x", 65)}},
		"at most 4096 bytes":       {{Name: "acme", Plan: "gold", Note: strings.Repeat("x", 4097)}},
	} {
		if _, err := clients.NewTable(all...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	table, err := clients.NewTable(clients.Client{Name: "acme", Plan: "gold"})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() { table.Grant("acme"); table.Grant("nobody") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
