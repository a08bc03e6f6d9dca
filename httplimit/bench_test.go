package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit"
	"github.com/weirlimit/weir/httplimit/header"
)

// discard is a ResponseWriter that keeps nothing but the header. Only what the middleware costs is seen.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func bench(b *testing.B, l *weir.Limiter, opts httplimit.Options) {
	b.Helper()
	h := limit(b, l, opts, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := &discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// Limits that are never reached, by a limiter's usual clock.
func BenchmarkAdmitted(b *testing.B) {
	bench(b, plainLimiter(b, "1000000000/1s"), httplimit.Options{})
}

// A limit of which a client has a number of units left that it had before.
func BenchmarkAdmittedAgain(b *testing.B) {
	bench(b, plainLimiter(b, "10000000/1s burst=100"), httplimit.Options{})
}

func BenchmarkAdmittedWithNothingTold(b *testing.B) {
	bench(b, plainLimiter(b, "1000000000/1s"), httplimit.Options{Headers: header.None})
}

func BenchmarkDenied(b *testing.B) { bench(b, plainLimiter(b, "1/1h"), httplimit.Options{}) }

// Costs that are known when the answer is.
func BenchmarkCharged(b *testing.B) {
	bench(b, plainLimiter(b, "1000000000/1s", weir.WithName("work")), httplimit.Options{Charge: admission.Failures})
}

// plainLimiter returns a limiter by the usual clock.
func plainLimiter(b *testing.B, text string, opts ...weir.Option) *weir.Limiter {
	b.Helper()
	l, err := weir.New(weir.MustParseLimit(text), opts...)
	if err != nil {
		b.Fatal(err)
	}
	return l
}
