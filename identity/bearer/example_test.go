package bearer_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/identity/bearer"
)

// Who brings a token is counted by its subject, everybody else by address.
func ExampleVerified() {
	secret := []byte("a secret of thirty-two bytes, ok")
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	subject, err := bearer.Verified("sub", bearer.Options{
		Methods: []string{"HS256"},
		Key:     func(*jwt.Token) (any, error) { return secret, nil },
		Now:     func() time.Time { return noon },
	})
	if err != nil {
		panic(err)
	}
	key := identity.Key{identity.First(subject, identity.Peer.Source())}

	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.7:1234"
	for _, expires := range []time.Time{noon.Add(time.Hour), noon} {
		claims := jwt.MapClaims{"sub": "alice", "exp": expires.Unix()}
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		fmt.Println(key.Of(r))
	}
	// Output:
	// bearer:sub=alice
	// client_ip=192.0.2.7
}

func ExampleUnverified() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.bm9ib2R5IGxvb2tz")
	subject := bearer.Unverified("sub")
	fmt.Println(subject, subject.Value(r))
	// Output: bearer_unverified:sub alice
}
