package httplimit_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirlimit/weir/httplimit"
)

func TestZeroTransportReturnsAnError(t *testing.T) {
	for _, tr := range []*httplimit.Transport{nil, {}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := tr.RoundTrip(r)
		if err == nil || !strings.Contains(err.Error(), "accepted: a Transport that NewTransport returned") {
			t.Errorf("error %v", err)
		}
		if answer != nil {
			_ = answer.Body.Close()
		}
	}
}
