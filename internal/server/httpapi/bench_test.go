package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// nowhere is a ResponseWriter that keeps nothing.
type nowhere struct{ header http.Header }

func (w nowhere) Header() http.Header         { return w.header }
func (w nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w nowhere) WriteHeader(int)             {}

func BenchmarkTake(b *testing.B) {
	s := newServer()
	body := strings.NewReader("")
	r := httptest.NewRequest(http.MethodPost, "/v1/take", nil)
	r.Header.Set("Content-Type", "application/json")
	w := nowhere{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(`{"key":"user:42","limit":"100/1m","cost":1}`)
		r.Body = io.NopCloser(body)
		s.ServeHTTP(w, r)
	}
}
