package nethttp_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
)

// The limit for all is around the whole router; failed logins are counted besides, on one route.
func Example() {
	perClient := must(httplimit.New(must(weir.New(weir.MustParseLimit("100/1m"))), httplimit.Options{}))
	logins := must(httplimit.New(must(weir.New(weir.MustParseLimit("2/1h"), weir.WithName("logins"))), httplimit.Options{Charge: admission.Failures}))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.PathValue("name")) })
	mux.Handle("POST /login", logins(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") != "swordfish" {
			http.Error(w, "wrong password", http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})))
	r := perClient(mux) // for http.ListenAndServe

	for _, target := range []string{"/login?try=1", "/login?try=2", "/login?try=3"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, target, nil))
		fmt.Println("POST", target, w.Code)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/hello/ann", nil))
	fmt.Println("GET /hello/ann", w.Code, w.Body)
	// Output:
	// POST /login?try=1 401
	// POST /login?try=2 401
	// POST /login?try=3 429
	// GET /hello/ann 200 hello ann
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
