package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// A Problem is an answer that is not a decision: the problem document of RFC 9457, application/problem+json.
type Problem struct {
	Type   string `json:"type"`   // "about:blank": the status says which kind it is
	Title  string `json:"title"`  // the status, in words
	Status int    `json:"status"` // as in the status line
	Detail string `json:"detail"`
	// Field says what is wrong with the request ("key", "cost", "body", "method", ...), Value what it was, cut to a
	// readable length, and Accepted what would do. All are empty when the request is not to blame.
	Field    string `json:"field,omitempty"`
	Value    string `json:"value,omitempty"`
	Accepted string `json:"accepted,omitempty"`
	// Token is what is still held when a renewal found that some is not.
	Token string `json:"token,omitempty"`
}

// refuse blames a field of the request.
func refuse(field, value, accepted string) *Problem {
	value = shown(value)
	return &Problem{
		Status:   http.StatusBadRequest,
		Detail:   field + " is " + value + "; accepted: " + accepted,
		Field:    field,
		Value:    value,
		Accepted: accepted,
	}
}

// unknownField blames a field that there is not.
func unknownField(name, accepted string) *Problem {
	return refuse(cmp.Or(shown(name), `""`), "unknown", accepted)
}

func (p *Problem) write(w http.ResponseWriter) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	body, err := json.Marshal(p)
	if err != nil { // strings and a number: can't be
		body = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// maxShown is how many bytes of a client's own value an answer repeats.
const maxShown = 200

func shown(value string) string {
	if len(value) > maxShown {
		value = value[:maxShown] + "…"
	}
	return strings.ToValidUTF8(value, "�")
}
