package policy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlimit/weir/policy"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A service limits logins by address and, apart from it, by user, and calls of its API by key, with
// plans. The key is a secret, and only its hash is used.
func Example() {
	ctx := context.Background()
	config := must(policy.Parse([]byte(`
policies:
  - name: login
    match: {method: POST, path: /login}
    key: [client_ip]
    limits: ["2/1m", "20/1h"]
  - name: login-user
    match: {method: POST, path: /login}
    key: ["attribute:user"]
    limits: ["30/1h"]
  - name: api
    match: {path: "/api/**"}
    key: ["hash:header:X-API-Key"]
    limits: ["100/1m"]
    plans: {gold: ["1000/1m"], blocked: deny}
  - name: api-address # bounds a client that makes up keys
    match: {path: "/api/**"}
    key: [client_ip]
    limits: ["3000/1m"]
`), "weir.yaml"))
	set := must(policy.New(config, policy.Options{}))
	login := &policy.Request{
		Method: "POST", Path: "/login", ClientIP: netip.MustParseAddr("192.0.2.1"), Attributes: map[string]string{"user": "alice"},
	}
	for range 3 {
		d := must(set.Check(ctx, login))
		fmt.Println(d.Allowed, d.Remaining, d.Denied, d.Each[0].Key, d.Each[2].Key, d.RetryAfter.Round(time.Second))
	}
	name := must(policy.ClientName("hash:header:X-API-Key=key-1"))
	if err := set.UseClients(someClients{name: {Plan: "gold"}}); err != nil {
		panic(err)
	}
	d := must(set.Check(ctx, &policy.Request{
		Method: "GET", Path: "/api/users", ClientIP: netip.MustParseAddr("192.0.2.1"), Header: http.Header{"X-Api-Key": {"key-1"}},
	}))
	fmt.Println(d.Allowed, d.Remaining, d.Each[0].Plan, d.Each[0].Role.String())
	for _, s := range set.Stats() {
		fmt.Println(s.Policy, s.Allowed, s.Denied)
	}
	// Output:
	// true 1 [] 192.0.2.1 alice 0s
	// true 0 [] 192.0.2.1 alice 0s
	// false 0 [login] 192.0.2.1 alice 30s
	// true 999 gold enforced
	// login 2 1
	// login-user 3 0
	// api 1 0
	// api-address 1 0
}

// someClients are clients by name, as a table of a database has them.
type someClients map[string]*policy.Grant

func (c someClients) Grant(client string) (*policy.Grant, bool) {
	g, ok := c[client]
	return g, ok
}

func (c someClients) Grants(f func(*policy.Grant) error) error {
	for _, g := range c {
		if err := f(g); err != nil {
			return err
		}
	}
	return nil
}

func ExampleParse() {
	_, err := policy.Parse([]byte(`policies:
  - name: login
    key: [client_ip]
    limts: ["5/1m"]
    mode: shadwo
`), "weir.yaml")
	fmt.Println(err)
	var first *policy.ConfigError
	fmt.Println(errors.As(err, &first), first.Line, first.Column, strings.HasPrefix(err.Error(), first.Error()))
	// Output:
	// weir.yaml:4:5: policies[0].limts is not known; did you mean "limits"?; accepted: name, match, key, client, cost, limits, plans, mode, candidate, on_store_error
	// weir.yaml:5:11: policies[0].mode is "shadwo"; did you mean shadow?; accepted: enforce, shadow
	// true 4 5 true
}

// A configuration can be written in Go as well.
func ExampleNew() {
	set := must(policy.New(&policy.Config{Policies: []policy.Policy{{
		Name:   "uploads",
		Match:  []policy.Match{{Method: []string{"PUT"}, Path: []string{"/files/**"}}},
		Key:    []string{"attribute:tenant"},
		Cost:   policy.Cost{From: "attribute:megabytes"},
		Limits: []policy.NamedLimit{{Limit: "500/day tz=Europe/Berlin"}},
	}}}, policy.Options{}))
	request := &policy.Request{Method: "PUT", Path: "/files/a", Attributes: map[string]string{"tenant": "t1", "megabytes": "120"}}
	fmt.Println(must(set.Check(context.Background(), request)).Remaining)
	request.Attributes["megabytes"] = "many"
	_, err := set.Check(context.Background(), request)
	var wrong *policy.RequestError
	fmt.Println(errors.As(err, &wrong), wrong.Error())
	// Output:
	// 380
	// true weir: attribute megabytes is "many"; accepted: a whole number, 0 to 9007199254740992
}

// The file is followed: a change is in use within a second, and one that makes no sense is refused as a whole.
func ExampleLoad() {
	dir := must(os.MkdirTemp("", "weir"))
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "weir.yaml")
	write := func(limit string) {
		if err := os.WriteFile(path, []byte("policies: [{name: all, key: all, limits: ["+limit+"]}]"), 0o600); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	write("10/24h")
	set := must(policy.Load(ctx, path, policy.Options{}))
	go set.Follow(ctx, path)
	fmt.Println(must(set.Check(ctx, &policy.Request{})).Remaining)

	write("20/24h")
	fmt.Println(set.Reload(path), len(set.Config().Policies)) // at once, as for a SIGHUP
	fmt.Println(must(set.Check(ctx, &policy.Request{})).Remaining)
	write("20/never")
	fmt.Println(set.Reload(path) != nil, set.Status().Config.Err != nil, set.Status().Policies)
	fmt.Println(set.Replace(&policy.Config{}), set.Status().Policies)
	// Output:
	// 9
	// <nil> 1
	// 18
	// true true 1
	// <nil> 0
}

// The work of a request is done beside at most one other, and what it costs is known when it is done.
func ExampleSet_Commit() {
	ctx := context.Background()
	set := must(policy.New(must(policy.Parse([]byte(`
policies:
  - name: tokens
    key: ["attribute:user"]
    cost: "attribute:tokens"
    limits: ["10000/24h", "concurrent 2 lease=30s"]
`), "weir.yaml")), policy.Options{}))
	ask := func(tokens string) policy.Decision {
		return must(set.Check(ctx, &policy.Request{Attributes: map[string]string{"user": "u1", "tokens": tokens}, Hold: time.Minute}))
	}
	first, second := ask("2000"), ask("3000")
	fmt.Println(first.Each[0].Remaining, second.Each[0].Remaining, second.Each[1].Remaining, ask("1").Denied)
	token := must(set.Renew(ctx, first.Token)) // it takes longer than 30s
	fmt.Println(set.Commit(ctx, token, 500), set.Cancel(ctx, second.Token))
	third := ask("0")
	fmt.Println(third.Each[0].Remaining, third.Each[1].Remaining)
	fmt.Println(set.Release(ctx, third.Token))
	fmt.Println(set.Release(ctx, third.Token))
	// Output:
	// 8000 5000 0 [tokens]
	// <nil> <nil>
	// 9500 1
	// <nil>
	// weir: nothing is held under the token any more: it was settled, or its time is over
}

func ExampleSet_Explain() {
	set := must(policy.New(must(policy.Parse([]byte(`
policies:
  - {name: login, match: {method: POST, path: /login}, key: [client_ip], limits: [5/1m]}
  - {name: api, match: {path: "/api/**"}, key: [client_ip], limits: [100/1m, concurrent 8 lease=30s]}
`), "weir.yaml")), policy.Options{}))
	request := &policy.Request{Method: "GET", Path: "/api/users", ClientIP: netip.MustParseAddr("192.0.2.1")}
	explanation := must(set.Explain(context.Background(), request))
	if err := explanation.WriteText(os.Stdout); err != nil {
		panic(err)
	}
	fmt.Printf("%s\n%.60s…\n", must(explanation.Policies[1].Limits[1].MarshalJSON()), must(explanation.MarshalJSON()))
	// Output:
	// allowed
	//
	// login does not match: path is /api/users, and would have to be /login
	//
	// api matches
	//   key      192.0.2.1
	//   plan     none: there are no clients; the default limits apply
	//   cost     1
	//   limit    100/1m: 100 of 100 remain, would allow
	//   limit    concurrent 8 lease=30s: 8 of 8 remain, would allow
	// {"limit":"concurrent 8 lease=30s","role":"enforced","key":"192.0.2.1","cost":1,"allowed":true,"capacity":8,"remaining":8,"retry_after_us":0,"reset_after_us":0,"delay_us":0}
	// {"allowed":true,"policies":[{"name":"login","matched":false,…
}

func ExampleSchema() {
	fmt.Printf("%.70s…\n", policy.Schema())
	// Output:
	// {
	//   "$schema": "https://json-schema.org/draft/2020-12/schema",
	//   "$id"…
}
