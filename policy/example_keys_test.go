package policy_test

import (
	"context"
	"fmt"
	"log"

	"github.com/weirlimit/weir/policy"
)

func ExampleSet_Keys() {
	config, err := policy.Parse([]byte(`
policies:
  - {name: all, key: all, limits: ["100/1s"]}
  - {name: login, match: {path: /login}, key: ["attribute:user"], limits: ["5/1m"]}
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", set.Keys(&policy.Request{Path: "/login", Attributes: map[string]string{"user": "bob"}}))
	fmt.Printf("%q\n", set.Keys(&policy.Request{Path: "/"}))

	// A log or reply with a decision has the masked key: the client may want to keep its name
	// private.
	d, err := set.Check(context.Background(), &policy.Request{Path: "/login", Attributes: map[string]string{"user": "bob"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d.Each[1].Key, d.Each[1].MaskedKey())
	// Output:
	// ["all/" "login/bob"]
	// ["all/"]
	// bob #81b637d8
}

// A source of clients leaves out a client that the policies refuse, and uses the rest.
func ExampleSet_ClientCheck() {
	config, err := policy.Parse([]byte(`
policies:
  - {name: api, key: ["attribute:tenant"], limits: ["100/1s"], plans: {gold: ["1000/1s"]}}
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	check := set.ClientCheck()
	fmt.Println(check("acme", &policy.Grant{Plan: "gold"}))
	fmt.Println(check("umbrella", &policy.Grant{Plan: "gould"}))
	// Output:
	// <nil>
	// weir: plan "gould" is of no policy; accepted: gold
}
