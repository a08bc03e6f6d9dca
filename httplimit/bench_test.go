package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// discard is a ResponseWriter that keeps nothing but the header. Only what the middleware costs is seen.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func bench(b *testing.B, limit string, opts httplimit.Options) {
	b.Helper()
	l, err := weir.New(weir.MustParseLimit(limit))
	if err != nil {
		b.Fatal(err)
	}
	mw, err := httplimit.New(l, opts)
	if err != nil {
		b.Fatal(err)
	}
	h := mw(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := &discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

func BenchmarkAdmitted(b *testing.B) { bench(b, "1000000000/1s", httplimit.Options{}) }
func BenchmarkDenied(b *testing.B)   { bench(b, "1/1h", httplimit.Options{}) }
func BenchmarkNoFields(b *testing.B) {
	bench(b, "1000000000/1s", httplimit.Options{Headers: header.None})
}
