// Package bearer finds who asks in a claim of the JSON Web Token that a request brings as its bearer token.
//
// What [Verified] finds, the issuer has signed; what [Unverified] finds, anybody can have written. Both find nothing where a request has no token that
// will do, and never answer the client: to refuse such requests is for what stands behind. So a key of a bearer token alone lets clients without a
// good one share one budget, and is better the first of two, with the address for those:
//
//	identity.Key{identity.First(verified, identity.Peer.Source())}
package bearer

import (
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/weirlimit/weir/identity"
)

// MaxToken is the most bytes of a token that is looked at. A longer one is none.
const MaxToken = 8 << 10

// Unverified is a claim of the token as the client says it: anybody can write one, and make up a new one for each request. It is for what is behind something
// that has verified the token. Neither signature, issuer nor times are looked at. The claim is one of the token's own, not of an object in it; what it may be is what it
// may be for [Verified].
func Unverified(claim string) identity.Source {
	parser := jwt.NewParser(jwt.WithJSONNumber())
	return identity.Func(named("bearer_unverified:", claim), func(r *http.Request) string {
		claims := jwt.MapClaims{}
		if _, _, err := parser.ParseUnverified(token(r), claims); err != nil {
			return ""
		}
		return text(claims[claim])
	})
}

// token returns the bearer token of a request, or "" if it has none, or more than one Authorization: which of them the next server would believe can't be told.
func token(r *http.Request) string {
	fields := r.Header["Authorization"]
	if len(fields) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || len(token) > MaxToken {
		return ""
	}
	return token
}

// named returns the name of a source, or "", which is none, without a claim.
func named(prefix, claim string) string {
	if claim == "" {
		return ""
	}
	return prefix + claim
}
