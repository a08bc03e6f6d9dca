package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/server/httpapi"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// limiters is the obvious set of limiters: one for each text, for ever.
type limiters struct {
	mu    sync.Mutex
	store store.Store
	made  map[string]*weir.Limiter
	err   error // what Get returns, if not nil
}

func newLimiters() *limiters {
	return &limiters{store: memory.New(memory.Options{}), made: map[string]*weir.Limiter{}}
}

func (s *limiters) Get(text []byte) (*weir.Limiter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if l, ok := s.made[string(text)]; ok {
		return l, nil
	}
	limit, err := weir.ParseLimit(string(text))
	if err != nil {
		return nil, err
	}
	l, err := weir.New(limit, weir.WithStore(s.store))
	s.made[string(text)] = l
	return l, err
}

func newServer(change ...func(*httpapi.Options)) *httpapi.Server {
	opts := httpapi.Options{Limiters: newLimiters(), Log: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	return httpapi.New(opts)
}

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
