package httplimit

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/admission"
	"github.com/weirlimit/weir/httplimit/header"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/store"
)

// Options for New. The zero Options are right for a public server without proxies: they count clients by their address, one unit for each request, tell them of the limit as draft 11 of the
// IETF has it, and refuse requests while the store can't decide.
type Options struct {
	// Name is what clients are told that the limiter is called, up to 128 of the characters from space to ~; several middlewares of one handler need different ones. "": its limit's text, as it is
	// for limiters that Override returns. Of policies it must be empty: they have names.
	Name string
	// Key is who is counted, by a limiter. Nil: the client's address, of IPv6 the first 64 bits. Of policies it must be nil: they have keys.
	Key identity.Key
	// Cost is what a request costs; 0 is a peek. Nil: 1, or what the policies say.
	Cost func(*http.Request) int64
	// Override returns a limiter for the request in place of the usual one, as of a plan; nil is the usual one. Of policies it must be nil: they have plans.
	Override func(*http.Request) *weir.Limiter
	// ClientIP is through which proxies a client's address comes. Nil: through none. It is for policies and for the Key that is used if Key is nil; a Key says itself which it means.
	ClientIP *identity.ClientIP
	// Attributes are what policies are told of a request besides, by name. With a limiter there are none.
	Attributes map[string]identity.Source
	// Skip reports whether a request passes without being looked at. It is told nothing of limits.
	Skip func(*http.Request) bool
	// Charge says what a request costs once it is answered, as admission.Failures does. Until then Cost, or 1, is held for it; what is less is given back, what is more is owed, up
	// to 1024 times the limit's capacity. A limiter must have a name for it (weir.WithName), and be neither concurrent nor exponential. With policies it is for those that do not say what a request costs.
	// Nil: the cost is known beforehand.
	Charge func(*http.Request, admission.Response) int64
	// Hold is the life of an estimate between renewals: 1ms to 24h. 0: admission.DefaultHold. The
	// estimate is renewed until the request is answered; see admission.Options. Hold is for Charge.
	Hold time.Duration
	// OnStoreError is the decision while the limiter's store fails: requests are refused
	// (store.Deny), pass (store.Allow), or are limited in the memory of this process (store.Local,
	// store.LocalShare). With store.Deny, the zero value, it is the limiter's own
	// (weir.WithOnStoreError). For policies it must be store.Deny: they have on_store_error.
	OnStoreError store.OnError
	// Log receives a warning when no decision could be made, and when something could not be
	// settled: each at most once a second. It receives a warning, with the address of the peer,
	// when a request with X-Forwarded-For, Forwarded or X-Real-IP does not come from a trusted
	// proxy. Nil: slog.Default().
	Log *slog.Logger

	// Headers are the header fields that tell clients of the limits, on every answer. 0: header.Draft11.
	Headers header.Formats
	// Respond, if not nil, answers the requests that are refused, in place of a problem document. The header fields are set, Retry-After and Cache-Control among them. What it writes without
	// a status has that of the Refusal, and so has an answer that it leaves empty.
	Respond func(http.ResponseWriter, *http.Request, Refusal)
}

// A Refusal is what is to be answered to a request that may not pass.
type Refusal struct {
	// Admission says why. Its Err, if there is one, is for the server's log: it may name hosts of a store, or quote what the client sent.
	admission.Admission
	// Status is 429; 422 of a cost that never passes, 403 of a plan that is deny, 503 if no decision could be made, 400 of a request that makes no sense.
	Status int
}
