package clients_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// exampleURL is that of a new file of SQLite.
func exampleURL() (url string, remove func()) {
	dir, err := os.MkdirTemp("", "weir-example-")
	if err != nil {
		panic(err)
	}
	return "sqlite:" + filepath.Join(dir, "clients.db"), func() { _ = os.RemoveAll(dir) }
}

// A service follows the clients' database: its policies use what is there, at once when it changes.
func Example() {
	ctx := context.Background()
	url, remove := exampleURL()
	defer remove()
	db, err := clients.Open(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	if err := db.Set(ctx, clients.Client{Name: "acme", Plan: "gold"}); err != nil {
		fmt.Println(err)
		return
	}

	config, err := policy.Parse([]byte(`
policies:
  - name: api
    key: ["attribute:tenant"] # which the caller has verified
    limits: ["100/1m"]
    plans: {gold: ["1000/1m"]}
`), "weir.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := policy.New(config, policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	follower, err := clients.Follow(ctx, url, clients.Options{Policies: set, Snapshot: filepath.Join(os.TempDir(), "weir-example.snapshot"), Log: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(filepath.Join(os.TempDir(), "weir-example.snapshot"))
	defer follower.Close()

	for _, client := range []string{"acme", "umbrella"} {
		d, err := set.Check(ctx, &policy.Request{Path: "/", Attributes: map[string]string{"tenant": client}})
		fmt.Println(client, d.Limit, err)
	}
	status := follower.Status()
	fmt.Printf("%d client, %d bad rows, refused: %q, away: %q\n", status.Clients, status.BadRows, status.Refused, status.Away)
	for _, bad := range follower.Table().BadRows() {
		fmt.Println(bad)
	}
	// Output:
	// acme 1000 <nil>
	// umbrella 100 <nil>
	// 1 client, 0 bad rows, refused: "", away: ""
}

func ExampleDatabase() {
	ctx := context.Background()
	url, remove := exampleURL()
	defer remove()
	steps, err := clients.Migrate(ctx, url) // Open does it too, for SQLite
	fmt.Println(len(steps), err)
	db, err := clients.OpenExisting(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	_ = db.String() // sqlite:…/clients.db
	if files := db.Exposed(); len(files) > 0 {
		fmt.Println("others may read", files)
	}

	own, err := clients.ParseLimits("1000/1m; 50/1s\nlogin: 20/1m")
	fmt.Println(len(own[""]), len(own["login"]), err)
	n, err := db.Put(ctx, func(yield func(clients.Client, error) bool) {
		_ = yield(clients.Client{Name: "acme", Plan: "gold", Note: "pays well"}, nil) &&
			yield(clients.Client{Name: "umbrella", Limits: own, Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, nil)
	})
	fmt.Println(n, err)
	for c, err := range db.List(ctx, clients.Filter{Most: 10}) {
		fmt.Printf("%s %q %q %v\n", c.Name, c.Plan, clients.FormatLimits(c.Limits), err)
	}
	c, ok, err := db.Get(ctx, "acme")
	fmt.Println(c.Note, ok, err)
	n, err = db.Delete(ctx, "acme", "umbrella", "initech")
	fmt.Println(n, err)
	// Output:
	// 1 <nil>
	// 2 1 <nil>
	// 2 <nil>
	// acme "gold" "" <nil>
	// umbrella "" "1000/1m; 50/1s\nlogin: 20/1m" <nil>
	// pays well true <nil>
	// 2 <nil>
}

// A table stands for itself, as in tests.
func ExampleNewTable() {
	table, err := clients.NewTable(
		clients.Client{Name: "acme", Plan: "gold"},
		clients.Client{Name: "umbrella", Limits: map[string][]weir.Limit{"": {weir.MustParseLimit("1000/1m")}}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, ok := table.Grant("acme")
	fmt.Println(g.Plan, ok, table.Len())
	_ = table.Grants(func(g *policy.Grant) error {
		fmt.Printf("%q %d\n", g.Plan, len(g.Limits))
		return nil
	})
	// Output:
	// gold true 2
	// "gold" 0
	// "" 1
}

// The clients that a follower has now do not change any more.
func ExampleFollower() {
	url, remove := exampleURL()
	defer remove()
	follower, err := clients.Follow(context.Background(), url, clients.Options{Poll: 50 * time.Millisecond, Log: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer follower.Close()
	var _ policy.Clients = follower
	_, ok := follower.Grant("acme")
	fmt.Println(follower.Table().Len(), ok, follower.Grants(func(*policy.Grant) error { return nil }))
	// Output: 0 false <nil>
}

// What Migrate does, for who may not do it himself; and a client as it is imported and listed.
func ExampleScript() {
	sql, err := clients.Script("postgres://weir@db.example/limits")
	fmt.Println(sql[:6], err)
	var c clients.Client
	fmt.Println(c.UnmarshalJSON([]byte(`{"client":"acme","plan":"gold"}`)), c.Validate())
	line, err := c.MarshalJSON()
	fmt.Print(string(line), err)
	// Output:
	// BEGIN; <nil>
	// <nil> <nil>
	// {"client":"acme","plan":"gold","masked":"#822b33ad"}
	// <nil>
}

// What somebody wrote by hand, and no policy could use, is listed with why.
func ExampleRowError() {
	_, err := clients.ParseLimits("10 a minute")
	row := &clients.RowError{Client: clients.Client{Name: "acme"}, Limits: "10 a minute", Err: err}
	fmt.Println(row.Client.Name, strings.HasPrefix(row.Error(), "client #822b33ad: weir: limit has "), row.Unwrap() == err) //nolint:errorlint // this very one
	// Output: acme true true
}
