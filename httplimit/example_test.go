package httplimit_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// Each client, by its address, gets 2 requests per minute.
func ExampleNew() {
	limiter, err := weir.New(weir.MustParseLimit("2/1m"))
	if err != nil {
		log.Fatal(err)
	}
	perClient, err := httplimit.New(limiter, httplimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(perClient(http.HandlerFunc(hello))) // or http.ListenAndServe(":8080", perClient(mux))
	defer server.Close()

	for range 3 {
		show(http.Get(server.URL))
	}
	// Output:
	// 200 RateLimit: "2/1m";r=1;t=30
	// hello
	// 200 RateLimit: "2/1m";r=0;t=30
	// hello
	// 429 RateLimit: "2/1m";r=0;t=30 Retry-After: 30
	// {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"detail":"The limits have no room for this request now. Retry-After says when they may have.","violated-policies":["2/1m"]}
}

// One line for each client to get 2 requests per minute.
func ExampleMustPerClient() {
	server := httptest.NewServer(httplimit.MustPerClient("2/min")(http.HandlerFunc(hello)))
	defer server.Close()

	for range 3 {
		response, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(response.StatusCode)
	}
	// Output:
	// 200
	// 200
	// 429
}

// A limit from a configuration may be wrong: PerClient returns an error.
func ExamplePerClient() {
	_, err := httplimit.PerClient("100/fortnight")
	if refused, ok := errors.AsType[*weir.LimitError](err); ok {
		fmt.Println(refused.Field, refused.Value)
	}
	perClient, err := httplimit.PerClient("100/min")
	fmt.Println(perClient != nil, err)
	// Output:
	// period "fortnight"
	// true <nil>
}

// Three failed logins per hour from an address, however many succeed. A second limit by user name
// belongs beside it: examples/nethttp has both.
func ExampleNew_logins() {
	limiter, err := weir.New(weir.MustParseLimit("3/1h"), weir.WithName("logins")) // what is settled later needs a name
	if err != nil {
		log.Fatal(err)
	}
	failures, err := httplimit.New(limiter, httplimit.Options{
		Name:   "failed logins",
		Charge: admission.Failures,
	})
	if err != nil {
		log.Fatal(err)
	}
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	server := httptest.NewServer(failures(login))
	defer server.Close()

	for _, password := range []string{"right", "a", "b", "right", "c", "right"} {
		response, err := http.PostForm(server.URL, url.Values{"user": {"ann"}, "password": {password}})
		if err != nil {
			panic(err)
		}
		response.Body.Close()
		fmt.Println(password, response.StatusCode)
	}
	// Output:
	// right 200
	// a 401
	// b 401
	// right 200
	// c 401
	// right 429
}

// Who has an API key that is known is counted by it, and others by their address: so a made-up key gains nothing.
func ExampleNew_apiKeys() {
	known := map[string]bool{"key-1": true}
	key := identity.Func("key", func(r *http.Request) string {
		if k := r.Header.Get("X-Api-Key"); known[k] {
			return k
		}
		return ""
	})
	limiter, err := weir.New(weir.MustParseLimit("1/1h"))
	if err != nil {
		log.Fatal(err)
	}
	perClient, err := httplimit.New(limiter, httplimit.Options{Key: identity.Key{identity.First(key, identity.Peer.Source())}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(perClient(http.HandlerFunc(hello)))
	defer server.Close()

	for _, k := range []string{"key-1", "made-up-1", "made-up-2"} {
		fmt.Println(k, statusOf(server.URL, "X-Api-Key", k))
	}
	// Output:
	// key-1 200
	// made-up-1 200
	// made-up-2 429
}

// Policies say in a file who is limited, where, and how.
func ExampleNew_policies() {
	config, err := policy.Parse([]byte(`
policies:
  - name: everything
    key: [client_ip]
    limits: [1000/1h]
  - name: search
    match: {path: /search}
    key: ["header:X-Api-Key|client_ip"]
    limits: [2/1h]
`), "weir.yaml")
	if err != nil {
		log.Fatal(err)
	}
	set, err := policy.New(config, policy.Options{}) // or policy.Load, and set.Follow
	if err != nil {
		log.Fatal(err)
	}
	limited, err := httplimit.New(set, httplimit.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(limited(http.HandlerFunc(hello)))
	defer server.Close()

	show(http.Get(server.URL + "/search"))
	show(http.Get(server.URL + "/"))
	// Output:
	// 200 RateLimit: "everything";r=999;t=3597, "search";r=1;t=1800
	// hello
	// 200 RateLimit: "everything";r=998;t=3593
	// hello
}

// Behind a proxy, the client's address is what the proxy says that it is, and nobody else is believed.
func ExampleNew_behindAProxy() {
	behind, err := identity.Behind("X-Forwarded-For", "127.0.0.0/8", "10.0.0.0/8")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := weir.New(weir.MustParseLimit("1/1h"))
	if err != nil {
		log.Fatal(err)
	}
	perClient, err := httplimit.New(limiter, httplimit.Options{ClientIP: behind})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(perClient(http.HandlerFunc(hello)))
	defer server.Close()

	for _, addresses := range []string{"192.0.2.7", "192.0.2.8", "203.0.113.1, 192.0.2.7"} { // the last made up an address to hide behind
		fmt.Println(addresses, statusOf(server.URL, "X-Forwarded-For", addresses))
	}
	// Output:
	// 192.0.2.7 200
	// 192.0.2.8 200
	// 203.0.113.1, 192.0.2.7 429
}

// A megabyte per hour: each answer costs its bytes, once they are known. What goes beyond the limit is owed.
func ExampleNew_egress() {
	limiter, err := weir.New(weir.MustParseLimit("1000000/1h"), weir.WithName("egress"))
	if err != nil {
		log.Fatal(err)
	}
	bytes, err := httplimit.New(limiter, httplimit.Options{Name: "bytes", Charge: admission.Size})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(bytes(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, 700_000))
	})))
	defer server.Close()

	for range 3 {
		fmt.Println(statusOf(server.URL, "", ""))
	}
	// Output:
	// 200
	// 200
	// 429
}

// An answer of the server's own, and header fields for older clients.
func ExampleNew_respond() {
	limiter, err := weir.New(weir.MustParseLimit("1/1h"))
	if err != nil {
		log.Fatal(err)
	}
	perClient, err := httplimit.New(limiter, httplimit.Options{
		Headers: header.XRateLimit,
		Respond: func(w http.ResponseWriter, _ *http.Request, refusal httplimit.Refusal) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.WriteHeader(refusal.Status)
			fmt.Fprintln(w, "Slow down, please.")
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(perClient(http.HandlerFunc(hello)))
	defer server.Close()

	show(http.Get(server.URL))
	show(http.Get(server.URL))
	// Output:
	// 200 X-RateLimit-Remaining: 0
	// hello
	// 429 X-RateLimit-Remaining: 0 Retry-After: 3600
	// Slow down, please.
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }

// statusOf is how a request is answered that has a header field.
func statusOf(url, name, value string) int {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	if name != "" {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		panic(err)
	}
	return response.StatusCode
}

// show prints what of an answer is about limits, and its body.
func show(r *http.Response, err error) {
	if err != nil {
		panic(err)
	}
	defer r.Body.Close()
	fmt.Fprint(os.Stdout, r.StatusCode)
	for _, name := range []string{"RateLimit", "X-RateLimit-Remaining", "Retry-After"} {
		for _, value := range r.Header.Values(name) {
			fmt.Fprintf(os.Stdout, " %s: %s", name, value)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "\n%s", body)
}
