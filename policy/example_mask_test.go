package policy_test

import (
	"fmt"

	"github.com/weirlimit/weir/policy"
)

// Replies and logs have the mask of a client's name. Only addresses are shown in full.
func ExampleMaskClient() {
	for _, client := range []string{"client_ip=192.0.2.7", "header:X-API-Key=key-1", "acme"} {
		fmt.Println(policy.NamesSource(client), policy.MaskClient(client))
	}
	// Output:
	// true client_ip=192.0.2.7
	// true header:X-API-Key=#be297454
	// false #822b33ad
}

// A rule under a key of the client's choice limits nobody. The warning has its place.
func ExampleSet_Warnings() {
	config := must(policy.Parse([]byte(`policies: [{name: login, key: ["header:X-User"], limits: [5/1h]}]`), "weir.yaml"))
	for _, w := range must(policy.New(config, policy.Options{})).Warnings() {
		fmt.Println(w.File, w.Field, w.Note)
	}
	// Output: weir.yaml policies[0].key[0] false
}
