package httplimit_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/httplimit"
)

func TestPerClient(t *testing.T) {
	limit, err := httplimit.PerClient("2/hour")
	if err != nil {
		t.Fatal(err)
	}
	h := limit(okHandler)
	for i, want := range []struct {
		from   string
		status int
	}{
		{"192.0.2.1:5", 200}, {"192.0.2.1:6", 200}, {"192.0.2.1:7", 429}, {"192.0.2.2:5", 200},
		{"[2001:db8::1]:5", 200}, {"[2001:db8::2]:5", 200}, {"[2001:db8::3]:5", 429},
	} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.RemoteAddr = want.from
		h.ServeHTTP(w, r)
		if w.Code != want.status || w.Header().Get("Ratelimit-Policy") != `"2/1h";q=2;w=3600` {
			t.Errorf("request %d from %s: %d, want %d; %v", i+1, want.from, w.Code, want.status, w.Header())
		}
	}
}

func TestPerClientRefusesTextThatIsNoLimit(t *testing.T) {
	for _, text := range []string{"", "100", "100/", "0/min", "100/fortnight"} {
		limit, err := httplimit.PerClient(text)
		var refused *weir.LimitError
		if limit != nil || !errors.As(err, &refused) {
			t.Errorf("%q: %v", text, err)
		}
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.As(err, &refused) || !strings.Contains(err.Error(), "MustPerClient") {
					t.Errorf("MustPerClient(%q) panics with %v", text, err)
				}
			}()
			httplimit.MustPerClient(text)
		}()
	}
}

// The warning about an untrusted proxy has the setting to trust it.
func TestProxyThatIsNotTrustedIsLogged(t *testing.T) {
	var log strings.Builder
	url := serve(t, limit(t, newLimiter(t, "9/1h"), httplimit.Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, okHandler))
	for range 3 {
		get(t, url, "X-Forwarded-For: 192.0.2.66")
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `identity.Behind(\"X-Forwarded-For\", \"127.0.0.1\")`) || strings.Contains(text, "192.0.2.66") {
		t.Errorf("logged: %s", text)
	}
}
