package bearer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/identity/bearer"
)

// sign makes a token.
func sign(t testing.TB, method jwt.SigningMethod, key any, claims jwt.MapClaims, header ...string) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	for i := 0; i+1 < len(header); i += 2 {
		token.Header[header[i]] = header[i+1]
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// with returns a request with Authorization fields.
func with(authorization ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header["Authorization"] = authorization
	return r
}

func TestWhereTheTokenIs(t *testing.T) {
	token := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice"})
	tests := []struct {
		name   string
		fields []string
		want   string
	}{
		{"Bearer", []string{"Bearer " + token}, "alice"},
		{"AnyCase", []string{"bEARER " + token}, "alice"},
		{"SeveralSpaces", []string{"Bearer   " + token + " "}, "alice"},
		{"None", nil, ""},
		{"Empty", []string{""}, ""},
		{"NoScheme", []string{token}, ""},
		{"SchemeOnly", []string{"Bearer"}, ""},
		{"SchemeAndSpace", []string{"Bearer "}, ""},
		{"Tab", []string{"Bearer\t" + token}, ""},
		{"OtherScheme", []string{"Basic " + token}, ""},
		{"Longer scheme", []string{"Bearers " + token}, ""},
		{"Twice", []string{"Bearer " + token, "Bearer " + token}, ""},
		{"TwiceTheFirstOther", []string{"Basic YTpi", "Bearer " + token}, ""},
		{"TwoInOneField", []string{"Bearer " + token + ", Bearer " + token}, ""},
		{"TwoParts", []string{"Bearer a.b"}, ""},
		{"FourParts", []string{"Bearer " + token + ".e30"}, ""},
		{"Dots", []string{"Bearer .."}, ""},
	}
	verified := must(t, options())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, source := range []identity.Source{bearer.Unverified("sub"), verified} {
				if got := source.Value(with(test.fields...)); got != test.want {
					t.Errorf("%v finds %q, want %q", source, got, test.want)
				}
			}
		})
	}
}

func TestClaimsThatNameSomebody(t *testing.T) {
	tests := []struct {
		name, claims, want string
	}{
		{"Text", `{"sub":"alice"}`, "alice"},
		{"Number", `{"sub":42}`, "42"},
		{"NumberBeyondFloats", `{"sub":9007199254740993}`, "9007199254740993"},
		{"NumberAsWritten", `{"sub":1.50}`, "1.50"},
		{"Empty", `{"sub":""}`, ""},
		{"Missing", `{"iss":"alice"}`, ""},
		{"OtherCase", `{"SUB":"alice"}`, ""},
		{"Null", `{"sub":null}`, ""},
		{"Boolean", `{"sub":true}`, ""},
		{"Array", `{"sub":["alice"]}`, ""},
		{"Object", `{"sub":{"sub":"alice"}}`, ""},
		{"Dotted", `{"a":{"sub":"alice"}}`, ""},
		{"NoObject", `["sub"]`, ""},
		{"NothingAtAll", `null`, ""},
		{"NoJSON", `{"sub":`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := with("Bearer " + raw(t, `{"alg":"HS256"}`, test.claims))
			for _, source := range []identity.Source{bearer.Unverified("sub"), must(t, options())} {
				if got := source.Value(r); got != test.want {
					t.Errorf("%v of %s is %q, want %q", source, test.claims, got, test.want)
				}
			}
		})
	}
	if got := bearer.Unverified("https://example.com/tenant.id").Value(with("Bearer " + raw(t, `{"alg":"HS256"}`, `{"https://example.com/tenant.id":"t1"}`))); got != "t1" {
		t.Errorf("a claim whose name is a URL is %q, want t1", got)
	}
}

func TestTokensThatAreTooLongAreNone(t *testing.T) {
	for _, excess := range []int{0, 1} {
		claims := jwt.MapClaims{"sub": "alice", "pad": ""}
		token := sign(t, jwt.SigningMethodHS256, secret, claims)
		for missing := bearer.MaxToken + excess - len(token); missing > 0; missing = bearer.MaxToken + excess - len(token) {
			claims["pad"] = claims["pad"].(string) + strings.Repeat("x", max(1, missing*3/4-2))
			token = sign(t, jwt.SigningMethodHS256, secret, claims)
		}
		want := "alice"
		if len(token) > bearer.MaxToken {
			want = ""
		}
		for _, source := range []identity.Source{bearer.Unverified("sub"), must(t, options())} {
			if got := source.Value(with("Bearer " + token)); got != want {
				t.Errorf("%v of a token of %d bytes is %q, want %q", source, len(token), got, want)
			}
		}
	}
}

func TestUnverifiedBelievesAnything(t *testing.T) {
	token := sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"sub": "mallory", "exp": 1, "iss": "me"})
	if got := bearer.Unverified("sub").Value(with("Bearer " + token)); got != "mallory" {
		t.Errorf("found %q, want what the token says", got)
	}
}

func TestUnverifiedClaimsRefused(t *testing.T) {
	for _, claim := range []string{"", "a b", "a,b", strings.Repeat("x", 200)} {
		if s := bearer.Unverified(claim); s.Err() == nil {
			t.Errorf("claim %.10q was accepted", claim)
		}
	}
}
