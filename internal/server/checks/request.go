package checks

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// Bounds on what a client says of a request.
const (
	MaxHeaders    = 100 // values of headers
	MaxAttributes = 100
	MaxHold       = 24 * time.Hour

	mostHold = int64(MaxHold / time.Millisecond)
)

// What is accepted, in words.
const (
	PathAccepted    = "a path that begins with / and has no ?, decoded; what follows the ? is the query"
	AddressAccepted = "an IPv4 or IPv6 address, such as 192.0.2.7"
	NameAccepted    = "a header's name, of letters, digits and !#$%&'*+-.^_`|~"
)

// The same, of numbers.
var (
	CostAccepted = "a whole number from 0 to " + strconv.Itoa(policy.MaxCost)
	HoldAccepted = "whole milliseconds from 0, for none, to " + strconv.FormatInt(mostHold, 10)
)

// A Request is a policy.Request in the making. The zero value is one of which nothing is known.
type Request struct {
	policy.Request
	// OnError is the decision while the store fails, in place of that of the policies. Nil: theirs.
	OnError *store.OnError

	headers int
}

// A Refusal says what was wrong with a value, and what would do.
type Refusal struct{ Value, Accepted string }

// SetPath sets the path. It refuses what would match no policy by mistake, and so pass without a limit.
func (r *Request) SetPath(path string) *Refusal {
	if path != "" && path != "*" && (path[0] != '/' || strings.Contains(path, "?")) {
		return &Refusal{path, PathAccepted}
	}
	r.Path = path
	return nil
}

// SetAddress sets the client's address.
func (r *Request) SetAddress(text string) *Refusal {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return &Refusal{text, AddressAccepted}
	}
	r.ClientIP = addr
	return nil
}

// SetCost sets what the request costs.
func (r *Request) SetCost(units int64) *Refusal {
	if units < 0 || units > policy.MaxCost {
		return &Refusal{strconv.FormatInt(units, 10), CostAccepted}
	}
	r.Cost = &units
	return nil
}

// SetHold sets for how many milliseconds to reserve.
func (r *Request) SetHold(milliseconds int64) *Refusal {
	if milliseconds < 0 || milliseconds > mostHold {
		return &Refusal{strconv.FormatInt(milliseconds, 10), HoldAccepted}
	}
	r.Hold = time.Duration(milliseconds) * time.Millisecond
	return nil
}

// SetOnError sets the decision while the store fails.
func (r *Request) SetOnError(text string) *Refusal {
	on, err := store.ParseOnError(text)
	if err != nil {
		return &Refusal{text, store.OnErrorAccepted}
	}
	r.OnError = &on
	return nil
}

// HasHeader reports whether the header has a value, by its name in any case.
func (r *Request) HasHeader(name string) bool {
	return len(r.Header[http.CanonicalHeaderKey(name)]) > 0
}

// AddHeader adds a value of a header.
func (r *Request) AddHeader(name, value string) *Refusal {
	switch {
	case !isToken(name):
		return &Refusal{strconv.Quote(name), NameAccepted}
	case r.headers == MaxHeaders:
		return tooMany(MaxHeaders)
	case r.Header == nil:
		r.Header = http.Header{}
	}
	r.Header.Add(name, value)
	r.headers++
	return nil
}

// AddAttribute adds an attribute.
func (r *Request) AddAttribute(name, value string) *Refusal {
	_, twice := r.Attributes[name]
	switch {
	case twice:
		return &Refusal{strconv.Quote(name) + " given twice", "each name once"}
	case len(r.Attributes) == MaxAttributes:
		return tooMany(MaxAttributes)
	case r.Attributes == nil:
		r.Attributes = map[string]string{}
	}
	r.Attributes[name] = value
	return nil
}

func tooMany(most int) *Refusal {
	return &Refusal{"more than " + strconv.Itoa(most), "at most " + strconv.Itoa(most)}
}

// isToken reports whether a text can be a header's name.
func isToken(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
