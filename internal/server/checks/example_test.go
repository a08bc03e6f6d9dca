package checks_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/policy"
)

// A request is read bit by bit, checked, and settled.
func Example() {
	config, err := policy.Parse([]byte(`
policies:
  - {name: reports, match: {path: /reports}, key: ["attribute:tenant"], limits: ["concurrent 1 lease=30s"]}
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}

	var r checks.Request
	refusals := []*checks.Refusal{
		r.SetPath("/reports"), r.SetAddress("192.0.2.7"), r.AddHeader("Accept", "text/html"), r.AddAttribute("tenant", "acme"), r.SetHold(0), r.SetCost(1), r.SetOnError("local 25%"),
	}
	fmt.Println(refusals, r.HasHeader("accept"))
	fmt.Println(*r.SetPath("reports"))

	ctx := context.Background()
	d, err := set.Check(ctx, &r.Request)
	fmt.Println(d.Allowed, checks.LimitText(d.Each[0]), err)
	for _, s := range checks.Settlements {
		if s.Name == "release" {
			next, err := s.Do(ctx, set, d.Token, 0, false)
			fmt.Printf("%s: %q %v\n", s.Name, next, err)
		}
	}
	// Output:
	// [<nil> <nil> <nil> <nil> <nil> <nil> <nil>] true
	// {reports a path that begins with / and has no ?, decoded; what follows the ? is the query}
	// true concurrent 1 lease=30s <nil>
	// release: "" <nil>
}
