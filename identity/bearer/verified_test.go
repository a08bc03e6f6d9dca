package bearer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/identity/bearer"
)

var (
	secret = []byte("a secret of thirty-two bytes, ok")
	noon   = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
)

// options accept what is signed with the secret, at noon.
func options() bearer.Options {
	return bearer.Options{
		Methods: []string{"HS256"},
		Key:     func(*jwt.Token) (any, error) { return secret, nil },
		Now:     func() time.Time { return noon },
	}
}

func must(t testing.TB, o bearer.Options) identity.Source {
	t.Helper()
	s, err := bearer.Verified("sub", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raw makes a token of any header and claims, signed with the secret.
func raw(t testing.TB, header, claims string) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func TestTokensBelieved(t *testing.T) {
	at := func(d time.Duration) int64 { return noon.Add(d).Unix() }
	strict := func(o *bearer.Options) { o.Issuer, o.Audience = "id.example", []string{"api", "web"} }
	lenient := func(o *bearer.Options) { o.Leeway = time.Minute }
	tests := []struct {
		name   string
		change func(*bearer.Options)
		claims jwt.MapClaims
		want   string
	}{
		{"WithoutTimes", nil, jwt.MapClaims{}, "alice"},
		{"NotExpired", nil, jwt.MapClaims{"exp": at(time.Second)}, "alice"},
		{"Expired", nil, jwt.MapClaims{"exp": at(0)}, ""},
		{"ExpiredWithinLeeway", lenient, jwt.MapClaims{"exp": at(-59 * time.Second)}, "alice"},
		{"ExpiredBeyondLeeway", lenient, jwt.MapClaims{"exp": at(-60 * time.Second)}, ""},
		{"ExpiryNoTime", nil, jwt.MapClaims{"exp": "tomorrow"}, ""},
		{"FromNow", nil, jwt.MapClaims{"nbf": at(0)}, "alice"},
		{"YetToCome", nil, jwt.MapClaims{"nbf": at(time.Second)}, ""},
		{"YetToComeWithinLeeway", lenient, jwt.MapClaims{"nbf": at(time.Minute)}, "alice"},
		{"YetToComeBeyondLeeway", lenient, jwt.MapClaims{"nbf": at(61 * time.Second)}, ""},
		{"IssuerAndAudience", strict, jwt.MapClaims{"iss": "id.example", "aud": "web"}, "alice"},
		{"OneAudienceOfMany", strict, jwt.MapClaims{"iss": "id.example", "aud": []string{"x", "api"}}, "alice"},
		{"OtherIssuer", strict, jwt.MapClaims{"iss": "id.example.org", "aud": "api"}, ""},
		{"NoIssuer", strict, jwt.MapClaims{"aud": "api"}, ""},
		{"OtherAudience", strict, jwt.MapClaims{"iss": "id.example", "aud": "admin"}, ""},
		{"NoAudience", strict, jwt.MapClaims{"iss": "id.example"}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options()
			if test.change != nil {
				test.change(&o)
			}
			test.claims["sub"] = "alice"
			token := sign(t, jwt.SigningMethodHS256, secret, test.claims)
			if got := must(t, o).Value(with("Bearer " + token)); got != test.want {
				t.Errorf("sub is %q, want %q", got, test.want)
			}
		})
	}
}

// What no time can hold is neither past nor to come, however it is rounded.
func TestTimesThatCanNotBe(t *testing.T) {
	source := must(t, options())
	for claims, want := range map[string]string{
		`{"sub":"alice","nbf":1e30}`:                  "",
		`{"sub":"alice","nbf":1e400}`:                 "",
		`{"sub":"alice","nbf":-1e30}`:                 "",
		`{"sub":"alice","nbf":9223372036854775808}`:   "",
		`{"sub":"alice","nbf":9223372036854775807}`:   "",
		`{"sub":"alice","exp":1e30}`:                  "",
		`{"sub":"alice","exp":1e400}`:                 "",
		`{"sub":"alice","exp":18446744073709551615}`:  "",
		`{"sub":"alice","exp":-9223372036854775809}`:  "",
		`{"sub":"alice","iat":1e30}`:                  "",
		`{"sub":"alice","iat":-1e400}`:                "",
		`{"sub":"alice","exp":9007199254740992}`:      "alice",
		`{"sub":"alice","exp":9007199254740994}`:      "",
		`{"sub":"alice","nbf":-9007199254740992}`:     "alice",
		`{"sub":"alice","exp":4102444800000,"iat":0}`: "alice",
		`{"sub":"alice","nbf":1e-400}`:                "alice",
	} {
		if got := source.Value(with("Bearer " + raw(t, `{"alg":"HS256"}`, claims))); got != want {
			t.Errorf("%s is %q, want %q", claims, got, want)
		}
	}
}

// A token expires while the server runs.
func TestTheClockIsAskedForEachRequest(t *testing.T) {
	now := noon
	o := options()
	o.Now = func() time.Time { return now }
	source := must(t, o)
	r := with("Bearer " + sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice", "exp": noon.Unix() + 1}))
	if got := source.Value(r); got != "alice" {
		t.Errorf("before it expires: %q", got)
	}
	now = now.Add(time.Second)
	if got := source.Value(r); got != "" {
		t.Errorf("after it has expired: %q", got)
	}
}

func TestForgedTokensAreNothing(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	claims := jwt.MapClaims{"sub": "alice"}
	for name, test := range map[string]struct {
		methods []string
		key     any
		token   string
		want    string
	}{
		"Good":                       {[]string{"RS256"}, &private.PublicKey, sign(t, jwt.SigningMethodRS256, private, claims), "alice"},
		"GoodOfAKeySet":              {[]string{"RS256", "ES256"}, jwt.VerificationKeySet{Keys: []jwt.VerificationKey{&other.PublicKey, &private.PublicKey}}, sign(t, jwt.SigningMethodRS256, private, claims), "alice"},
		"Confused":                   {[]string{"RS256"}, &private.PublicKey, sign(t, jwt.SigningMethodHS256, der, claims), ""},
		"ConfusedWithPEM":            {[]string{"RS256"}, text, sign(t, jwt.SigningMethodHS256, text, claims), ""},
		"PublicKeyAsSecret":          {[]string{"HS256"}, text, sign(t, jwt.SigningMethodHS256, text, claims), ""},
		"PublicKeyAsSecretOfAKeySet": {[]string{"HS256"}, jwt.VerificationKeySet{Keys: []jwt.VerificationKey{secret, text}}, sign(t, jwt.SigningMethodHS256, text, claims), ""},
		"KeyIsNoSecret":              {[]string{"HS256"}, &private.PublicKey, sign(t, jwt.SigningMethodHS256, der, claims), ""},
		"EmptySecret":                {[]string{"HS256"}, []byte{}, sign(t, jwt.SigningMethodHS256, []byte{}, claims), ""},
		"NilKey":                     {[]string{"HS256"}, nil, sign(t, jwt.SigningMethodHS256, []byte{}, claims), ""},
		"None":                       {[]string{"RS256"}, &private.PublicKey, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), ""},
		"NoneThoughTheKeyAllowsIt":   {[]string{"RS256"}, jwt.UnsafeAllowNoneSignatureType, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), ""},
		"MethodNotAccepted":          {[]string{"RS384"}, &private.PublicKey, sign(t, jwt.SigningMethodRS256, private, claims), ""},
		"OtherKey":                   {[]string{"ES256"}, &private.PublicKey, sign(t, jwt.SigningMethodES256, other, claims), ""},
		"ToBeUnderstood":             {[]string{"HS256"}, secret, sign(t, jwt.SigningMethodHS256, secret, claims, "crit", "b64"), ""},
		"WithoutSignature":           {[]string{"HS256"}, secret, raw(t, `{"alg":"HS256"}`, `{"sub":"alice"}`)[:len(raw(t, `{"alg":"HS256"}`, `{"sub":"alice"}`))-43], ""},
		"MethodUnknown":              {[]string{"HS256"}, secret, raw(t, `{"alg":"HS257"}`, `{"sub":"alice"}`), ""},
		"MethodInOtherCase":          {[]string{"HS256"}, secret, raw(t, `{"alg":"hs256"}`, `{"sub":"alice"}`), ""},
		"MethodMissing":              {[]string{"HS256"}, secret, raw(t, `{}`, `{"sub":"alice"}`), ""},
		"MethodNoText":               {[]string{"HS256"}, secret, raw(t, `{"alg":["HS256"]}`, `{"sub":"alice"}`), ""},
		"HeaderNull":                 {[]string{"HS256"}, secret, raw(t, `null`, `{"sub":"alice"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := must(t, bearer.Options{Methods: test.methods, Key: func(*jwt.Token) (any, error) { return test.key, nil }})
			if got := source.Value(with("Bearer " + test.token)); got != test.want {
				t.Errorf("sub is %q, want %q", got, test.want)
			}
		})
	}
}

func TestNoKeyIsNothing(t *testing.T) {
	o := options()
	o.Key = func(*jwt.Token) (any, error) { return secret, errors.New("no such key") }
	token := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice"})
	if got := must(t, o).Value(with("Bearer " + token)); got != "" {
		t.Errorf("sub is %q, want nothing: there is no key", got)
	}
}

// Pitfall H8: what makes no sense is an error when the source is made.
func TestH8OptionsRefused(t *testing.T) {
	tests := []struct {
		name   string
		claim  string
		change func(*bearer.Options)
		field  string
	}{
		{"NoClaim", "", func(*bearer.Options) {}, "bearer claim"},
		{"ClaimOfTwoWords", "a b", func(*bearer.Options) {}, "bearer claim"},
		{"ClaimWithAnAt", "user@id", func(*bearer.Options) {}, "bearer claim"},
		{"ClaimTooLong", strings.Repeat("x", 122), func(*bearer.Options) {}, "bearer claim"},
		{"NoMethods", "sub", func(o *bearer.Options) { o.Methods = nil }, "bearer methods"},
		{"None", "sub", func(o *bearer.Options) { o.Methods = []string{"none"} }, "bearer methods"},
		{"NoneBesides", "sub", func(o *bearer.Options) { o.Methods = []string{"HS256", "none"} }, "bearer methods"},
		{"Unknown", "sub", func(o *bearer.Options) { o.Methods = []string{"RS257"} }, "bearer methods"},
		{"SecretsAndKeyPairs", "sub", func(o *bearer.Options) { o.Methods = []string{"HS256", "RS256"} }, "bearer methods"},
		{"NoKey", "sub", func(o *bearer.Options) { o.Key = nil }, "bearer key"},
		{"EmptyAudience", "sub", func(o *bearer.Options) { o.Audience = []string{"api", ""} }, "bearer audience"},
		{"LeewayNegative", "sub", func(o *bearer.Options) { o.Leeway = -1 }, "bearer leeway"},
		{"LeewayTooLong", "sub", func(o *bearer.Options) { o.Leeway = bearer.MaxLeeway + 1 }, "bearer leeway"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := options()
			test.change(&o)
			_, err := bearer.Verified(test.claim, o)
			refused, ok := errors.AsType[*identity.SourceError](err)
			if !ok || refused.Field != test.field || refused.Value == "" || refused.Accept == "" {
				t.Errorf("got %v, want an *identity.SourceError of %s", err, test.field)
			}
		})
	}
}

// What is changed in the options afterwards changes nothing.
func TestOptionsAreCopied(t *testing.T) {
	o := options()
	o.Audience = []string{"api"}
	source := must(t, o)
	o.Methods[0], o.Audience[0] = "HS512", "web"
	token := sign(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice", "aud": "api"})
	if got := source.Value(with("Bearer " + token)); got != "alice" {
		t.Errorf("sub is %q, want alice", got)
	}
}

// Whatever is sent, nobody is who did not sign.
func FuzzVerified(f *testing.F) {
	good := sign(f, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "alice"})
	for _, seed := range []string{"Bearer " + good, good, "Bearer a.b.c", "Bearer ..", "Basic YTpi", "Bearer " + raw(f, `{"alg":"none"}`, `{"sub":"bob"}`), "Bearer e30.e30.e30"} {
		f.Add(seed)
	}
	source, unverified := must(f, options()), bearer.Unverified("sub")
	f.Fuzz(func(t *testing.T, authorization string) {
		r := with(authorization)
		got := source.Value(r)
		if got != "" && got != "alice" {
			t.Errorf("%q makes %q out of nothing", authorization, got)
		}
		if said := unverified.Value(r); got != "" && said != got {
			t.Errorf("%q is verified to be %q, and says %q", authorization, got, said)
		}
	})
}
