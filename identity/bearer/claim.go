package bearer

import (
	"encoding/json"
	"math"

	"github.com/golang-jwt/jwt/v5"
)

// maxSeconds bounds the times of tokens, in seconds from 1970: that is 285 million years. Beyond what an int64 has, the parser's times are any.
const maxSeconds = 1 << 53

// text returns what a claim says, if it is a string or a number; that as it is written. Nothing else names anybody.
func text(claim any) string {
	switch claim := claim.(type) {
	case string:
		return claim
	case json.Number:
		return claim.String()
	}
	return ""
}

// timely reports whether the times of a token are some that can be. That exp and nbf are numbers, and in order, is the parser's to say.
func timely(claims jwt.MapClaims) bool {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if n, ok := claims[name].(json.Number); ok {
			if seconds, err := n.Float64(); err != nil || math.Abs(seconds) > maxSeconds {
				return false
			}
		}
	}
	return true
}
