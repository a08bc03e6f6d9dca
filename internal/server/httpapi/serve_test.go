package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store/memory"
)

func broken(err error) *limiters.Set {
	return limiters.New(&failing{memory.New(memory.Options{}), err})
}

// hosts are the names of the tests' server: httptest.NewRequest uses example.com.
var hosts = []string{"example.com"}

func newServer(change ...func(*httpapi.Options)) *httpapi.Server {
	opts := httpapi.Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{}))}, Hosts: hosts}
	for _, c := range change {
		c(&opts)
	}
	return httpapi.New(opts)
}

func admin(o *httpapi.Options) { o.Admin = true }

func trusting(o *httpapi.Options) { o.TrustClientTime = true }

// post sends a JSON body to the handler and returns the status and the body of the answer.
func post(tb testing.TB, h http.Handler, path, body string) (int, string) {
	tb.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	res := send(h, r)
	return res.StatusCode, read(tb, res)
}

func send(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func read(tb testing.TB, res *http.Response) string {
	tb.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// at is a body with a time of its own, seconds after a fixed instant.
func at(rest string, seconds float64) string {
	us := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() + int64(seconds*1e6)
	return fmt.Sprintf(`{"at_us":%d,%s}`, us, rest)
}
