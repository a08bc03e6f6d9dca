package admission

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/store"
)

// Options for New. The zero Options count clients by their address, as the connection's peer has it, one unit for each request.
//
// The functions are called for each request, by many goroutines at once, before it is decided on. What they panic with goes on.
type Options struct {
	// Name is what clients are told that the limiter is called, up to 128 of the characters from space to ~. "": its limit's text, as it is for limiters that
	// Override returns. Of policies it must be empty: they have names.
	Name string
	// Key is who is counted, by a limiter. Nil: the client's address, of IPv6 the first 64 bits. Of policies it must be nil: they have keys.
	Key identity.Key
	// Cost is what a request costs; 0 is a peek. Of a concurrent limit it is how much of it the request is while it is being served. Nil: 1, or what the policies say.
	Cost func(*http.Request) int64
	// Override returns a limiter for the request in place of the usual one; nil is the usual one. With Charge it must have a name. Of policies it must be nil: they have plans.
	Override func(*http.Request) *weir.Limiter
	// ClientIP is through which proxies a client's address comes. Nil: through none. It is for policies and for the Key that is used if Key is nil; a Key says
	// itself which it means.
	ClientIP *identity.ClientIP
	// Attributes are what policies are told of a request besides, by name. What a request does not have is no attribute of it. With a limiter there are none.
	Attributes map[string]identity.Source
	// Skip reports whether a request passes without being looked at.
	Skip func(*http.Request) bool
	// Charge says what a request costs once it is answered; less than 0 is 0. Until then Cost, or 1, is held for it, so that no more requests are under way than the limit has room
	// for; what is less is given back, and what is more is owed, up to 1024 times the limit's capacity: it is taken before anything else as units come back. A limiter must have a name for it (weir.WithName),
	// and must not be of a concurrent limit, nor of an exponential one, which gives nothing back; with a concurrent one that Override returns it counts for nothing. With policies it is for those that
	// say no cost, and those whose cost the request says; with Cost it is for all. Nil: the cost is known beforehand.
	Charge func(*http.Request, Response) int64
	// Hold is the life of an estimate between renewals: 1ms to 24h. 0: DefaultHold. The estimate is
	// renewed at each third of Hold until the request is answered, and expires if the process dies,
	// stands still or can't reach the store for so long. An expired estimate is charged in full
	// after the response, as debt where there is no room. Hold is for Charge.
	Hold time.Duration
	// OnStoreError is the decision while the limiter's store fails. With store.Deny, the zero value,
	// it is the limiter's own (weir.WithOnStoreError); if that is store.Deny too, requests are
	// Undecided. For policies it must be store.Deny: they have on_store_error.
	OnStoreError store.OnError
	// Log receives a warning when no decision could be made, and when something could not be
	// settled: each at most once a second, without values of requests. It receives a warning, with
	// the address of the peer, when a request with X-Forwarded-For, Forwarded or X-Real-IP does not
	// come from a trusted proxy. Nil: slog.Default().
	Log *slog.Logger
}

// DefaultHold is the default of Options.Hold.
const DefaultHold = time.Minute

// A Response is what became of a request.
type Response struct {
	Status int         // of HTTP
	Bytes  int64       // of the body, as they were written
	Header http.Header // as the handler left it, and not a copy: it can say there what the work cost, also in a field that it sets too late to be sent. It must not be changed
}

// Failures charges 1 for an answer that is an error, of status 400 and above, and nothing for others: for logins.
func Failures(_ *http.Request, r Response) int64 {
	if r.Status >= http.StatusBadRequest {
		return 1
	}
	return 0
}

// Successes charges 1 for an answer that is no error, of a status below 400, and nothing for others.
func Successes(_ *http.Request, r Response) int64 { return 1 - Failures(nil, r) }

// Size charges 1 for each byte of the answer's body.
func Size(_ *http.Request, r Response) int64 { return r.Bytes }
