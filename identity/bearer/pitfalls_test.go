package bearer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
)

// Pitfall H10: a key that is made before anybody has authenticated. Who sends another invalid token with each request is still one address.
func TestH10InvalidTokensAreLimitedByAddress(t *testing.T) {
	limiter, err := weir.New(weir.MustParseLimit("3/1h"))
	if err != nil {
		t.Fatal(err)
	}
	key := identity.Key{identity.First(must(t, options()), identity.Peer.Source())}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := limiter.Take(r.Context(), key.Of(r), 1)
		if err != nil {
			t.Error(err)
		}
		if !d.Allowed {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()

	allowed := func(token func(int) string) (n int) {
		for i := range 8 {
			r, err := http.NewRequest(http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token(i))
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				n++
			}
		}
		return n
	}
	forged := func(i int) string {
		return sign(t, jwt.SigningMethodHS256, []byte("a guess"), jwt.MapClaims{"sub": fmt.Sprint("user-", i)})
	}
	if n := allowed(forged); n != 3 {
		t.Errorf("%d requests with a new forged token each were allowed, want 3: they come from one address", n)
	}
	expired := func(i int) string {
		return sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": fmt.Sprint("user-", i), "exp": noon.Unix() - int64(i)})
	}
	if n := allowed(expired); n != 0 {
		t.Errorf("%d requests with an expired token were allowed, want none: their address has nothing left", n)
	}
	if n := allowed(func(i int) string { return fmt.Sprint("garbage-", i) }); n != 0 {
		t.Errorf("%d requests with garbage were allowed, want none", n)
	}
	good := func(int) string { return sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice"}) }
	if n := allowed(good); n != 3 {
		t.Errorf("%d requests of one who has a good token were allowed, want 3: of the subject's own budget", n)
	}
}
