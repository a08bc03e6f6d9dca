package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/policy"
)

// The types of problems, the IETF's where it has one.
const (
	typeNone     = "about:blank"
	typeQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReduced  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeCapacity = "https://github.com/weirlimit/weir/blob/main/docs/middleware.md#cost-above-capacity"
)

// A problem is what a refusal looks like: a document of RFC 9457, and its status.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

// problemOf returns the problem of a request that may not pass. There is nothing in it that the client has said, and nothing of the error of a store.
func problemOf(o admission.Outcome) problem {
	switch o {
	case admission.Denied:
		return problem{
			Type: typeQuota, Title: "Quota exceeded", Status: http.StatusTooManyRequests,
			Detail: "The limits have no room for this request now. Retry-After says when they may have.",
		}
	case admission.Excessive:
		return problem{
			Type: typeCapacity, Title: "Cost above capacity", Status: http.StatusUnprocessableEntity,
			Detail: "The request costs more than a limit ever admits at once. It will not pass later either; a smaller one may.",
		}
	case admission.Forbidden:
		return problem{Type: typeNone, Title: "Forbidden", Status: http.StatusForbidden, Detail: "The client's plan admits no requests."}
	case admission.Invalid:
		return problem{Type: typeNone, Title: "Bad Request", Status: http.StatusBadRequest, Detail: "What the request says that it costs makes no sense."}
	case admission.Gone:
		return problem{Type: typeNone, Title: "Service Unavailable", Status: http.StatusServiceUnavailable, Detail: "The request was given up before it could be served."}
	default:
		return problem{
			Type: typeReduced, Title: "Temporarily reduced capacity", Status: http.StatusServiceUnavailable,
			Detail: "The server can't take on this request at the moment.",
		}
	}
}

// accepted is what an invalid request is told: what of it makes no sense, and what would. Not what it was: that is the client's.
func accepted(err error, otherwise string) string {
	var request *policy.RequestError
	var cost *weir.CostError
	switch {
	case errors.As(err, &request):
		return request.Field + " makes no sense; accepted: " + request.Accept
	case errors.As(err, &cost):
		return "cost makes no sense; accepted: 0 or more"
	}
	return otherwise
}

// document returns the JSON of the problem.
func (p *problem) document() []byte {
	body, err := json.Marshal(p)
	if err != nil { // of strings and a number there is none
		return []byte("{}")
	}
	return append(body, '\n')
}
