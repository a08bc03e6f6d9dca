package middleware

import (
	"net/http"

	"github.com/weirlimit/weir/bench/peer"
)

// A wrapper is middleware.
type wrapper = func(http.Handler) http.Handler

// A contender is middleware that is compared, limiting clients by the address that the connection has.
type contender struct {
	// Name is what the tables call it.
	Name string
	// Module is the module path whose version the report states, empty for code of this one or of weir.
	Module string
	Kind   peer.Kind
	// Open ones deny nothing here, so they have no denied path.
	Open bool
	// New builds middleware that knows no client yet.
	New func(peer.Budget) (wrapper, error)
}

const (
	// weirName is the row that all others are compared with: the zero Options.
	weirName = "weir"
	// bareName is the handler without middleware, which is what the others add to.
	bareName = "bare handler"
)

// contenders returns all of them, in the order of the tables.
func contenders() []contender {
	return []contender{
		{weirName, "", peer.Ours, false, newWeir},
		{"weir, no header fields", "", peer.Ours, false, newWeirSilent},
		{"weir, X-RateLimit-*", "", peer.Ours, false, newWeirX},
		{"weir, by API key", "", peer.Ours, false, newWeirByKey},
		{"weir, named limiter", "", peer.Ours, false, newWeirNamed},
		{"weir, policies", "", peer.Ours, false, newWeirPolicies},
		{"weir, charging failures", "", peer.Ours, true, newWeirFailures},
		{"tollbooth", "github.com/didip/tollbooth/v8", peer.Rival, false, newTollbooth},
		{"httprate", "github.com/go-chi/httprate", peer.Blurred, false, newHTTPRate},
		{"ulule/limiter", "github.com/ulule/limiter/v3", peer.Rival, false, newUlule},
		{"throttled", "github.com/throttled/throttled/v2", peer.Rival, false, newThrottled},
		{"sethvargo/go-limiter", "github.com/sethvargo/go-limiter", peer.Rival, false, newSethvargo},
		{"x/time/rate by hand", "golang.org/x/time", peer.Floor, false, newByHand},
		{bareName, "", peer.Floor, true, newBare},
	}
}

// Key returns the name.
func (c contender) Key() string { return c.Name }
