package httplimit_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
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
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello\n") })
	server := httptest.NewServer(perClient(hello)) // or http.ListenAndServe(":8080", perClient(hello))
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

// show prints what of an answer is about limits, and its body.
func show(r *http.Response, err error) {
	if err != nil {
		log.Fatal(err)
	}
	defer r.Body.Close()
	fmt.Print(r.StatusCode)
	for _, name := range []string{"RateLimit", "X-RateLimit-Remaining", "Retry-After"} {
		for _, value := range r.Header.Values(name) {
			fmt.Printf(" %s: %s", name, value)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n%s", body)
}
