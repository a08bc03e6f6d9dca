package bearer

import "encoding/json"

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
