package policy_test

import (
	"fmt"
	"log"
	"net/http"

	"github.com/weirlimit/weir/policy"
)

func ExampleSet_Keys() {
	config, err := policy.Parse([]byte(`
policies:
  - {name: all, key: all, limits: ["100/1s"]}
  - {name: login, match: {path: /login}, key: ["header:X-User"], limits: ["5/1m"]}
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%q\n", set.Keys(&policy.Request{Path: "/login", Header: http.Header{"X-User": {"bob"}}}))
	fmt.Printf("%q\n", set.Keys(&policy.Request{Path: "/"}))
	// Output:
	// ["all/" "login/bob"]
	// ["all/"]
}
