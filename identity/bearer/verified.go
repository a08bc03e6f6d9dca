package bearer

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir/identity"
)

// MaxLeeway is the longest leeway accepted.
const MaxLeeway = time.Hour

// Options say which tokens are believed.
type Options struct {
	// Methods are the signing methods of tokens that are looked at, such as "RS256" or "ES256". Required. They are all of shared secrets (HS256, HS384, HS512) or
	// none is, so that a token does not choose which of the two a key is; "none" is never one.
	Methods []string
	// Key finds the key of a token, by its kid for instance: what libraries for JSON Web Key Sets provide. It is called before anything of the token is believed,
	// once for each request with a well-formed token of one of the Methods, and should answer from memory. Required.
	//
	// A shared secret is a []byte. One that everybody knows is none, and its tokens count as nothing: a blank one, and a public key or a certificate in PEM, in DER, in base64 of that, or
	// as a JSON Web Key or a set of them. A public key in other forms, such as the 32 bytes of Ed25519, can't be told from a secret.
	Key jwt.Keyfunc
	// Issuer is what the claim iss must be. Empty: anything, or nothing.
	Issuer string
	// Audience are what the claim aud may be, or have one of. Empty: anything, or nothing.
	Audience []string
	// Leeway is how far the issuer's clock may be from this one, when exp and nbf are looked at: 0 to MaxLeeway.
	Leeway time.Duration
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
}

// Verified is a claim, such as sub, of a token that is signed, neither expired nor yet to come, and of the issuer and the audience of the options. A token
// that says nothing of when it expires does not; one whose exp, nbf or iat is no time, such as 1e30, is none. The claim is one of the token's own, not of an object in it: a string, or a number, which is as the token writes
// it. Of any other claim, of a token that is not as it should be, or longer than [MaxToken], and of a request with several Authorization fields, it is nothing.
//
// Verifying costs microseconds, up to about a hundred of RSA and elliptic curves, before a limit is asked. Who can't afford that for each request that anybody sends
// puts a limit by address in front.
//
// Its name is bearer: and the claim. Subjects are one issuer's: where two are told apart by [identity.First], each needs a name, which identity.Func("staff", s.Value) gives it.
//
// The error is an [*identity.SourceError] of what makes no sense.
func Verified(claim string, o Options) (identity.Source, error) {
	if err := o.check(); err != nil {
		return identity.Source{}, err
	}
	parser, key := o.parser(), careful(o.Key)
	s := identity.Func(named("bearer:", claim), func(r *http.Request) string {
		encoded := token(r)
		if encoded == "" {
			return ""
		}
		claims := jwt.MapClaims{}
		if _, err := parser.ParseWithClaims(encoded, claims, key); err != nil || !timely(claims) {
			return ""
		}
		return text(claims[claim])
	})
	if s.Err() != nil {
		return identity.Source{}, &identity.SourceError{Field: "bearer claim", Value: fmt.Sprintf("%.100q", claim), Accept: "the name of a claim, such as sub: up to 121 letters, digits and any of -_.:/"}
	}
	return s, nil
}

func (o Options) check() error {
	secrets := 0
	for _, name := range o.Methods {
		method := jwt.GetSigningMethod(name)
		if method == nil || strings.EqualFold(name, "none") {
			return &identity.SourceError{Field: "bearer methods", Value: fmt.Sprintf("%.100q", name), Accept: accepted()}
		}
		if _, secret := method.(*jwt.SigningMethodHMAC); secret {
			secrets++
		}
	}
	switch {
	case len(o.Methods) == 0:
		return &identity.SourceError{Field: "bearer methods", Value: "empty", Accept: accepted()}
	case secrets != 0 && secrets != len(o.Methods):
		return &identity.SourceError{Field: "bearer methods", Value: strings.Join(o.Methods, ","), Accept: "those of shared secrets (HS256, HS384, HS512), or others, not both"}
	case o.Key == nil:
		return &identity.SourceError{Field: "bearer key", Value: "a nil function", Accept: "a function that finds the key of a token"}
	case slices.Contains(o.Audience, ""):
		return &identity.SourceError{Field: "bearer audience", Value: `""`, Accept: "what the claim aud says"}
	case o.Leeway < 0 || o.Leeway > MaxLeeway:
		return &identity.SourceError{Field: "bearer leeway", Value: o.Leeway.String(), Accept: "0s to " + MaxLeeway.String()}
	}
	return nil
}

func (o Options) parser() *jwt.Parser {
	options := []jwt.ParserOption{jwt.WithJSONNumber(), jwt.WithValidMethods(slices.Clone(o.Methods)), jwt.WithLeeway(o.Leeway), jwt.WithIssuer(o.Issuer)}
	if len(o.Audience) > 0 {
		options = append(options, jwt.WithAudience(slices.Clone(o.Audience)...))
	}
	if o.Now != nil {
		options = append(options, jwt.WithTimeFunc(o.Now))
	}
	return jwt.NewParser(options...)
}

// accepted says which methods there are.
func accepted() string {
	names := slices.DeleteFunc(jwt.GetAlgorithms(), func(name string) bool { return name == "none" })
	slices.Sort(names)
	return "some of " + strings.Join(names, ", ")
}

var (
	errCritical = errors.New("bearer: the token has extensions that must be understood")
	errSecret   = errors.New("bearer: the key is no secret")
)

// careful finds keys as find does, and none for a token that says that it must be understood in some other way, nor a secret that anybody knows.
func careful(find jwt.Keyfunc) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		if _, critical := t.Header["crit"]; critical {
			return nil, errCritical
		}
		key, err := find(t)
		if err != nil {
			return nil, err
		}
		keys := []jwt.VerificationKey{key}
		if set, ok := key.(jwt.VerificationKeySet); ok {
			keys = set.Keys
		}
		if slices.ContainsFunc(keys, known) {
			return nil, errSecret
		}
		return key, nil
	}
}
