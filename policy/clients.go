package policy

import "github.com/weirlimit/weir"

// A Grant is what a client has instead of the default limits: a plan, or limits of its own.
type Grant struct {
	Plan string // "" if it has limits of its own
	// Limits are by the policy's name; those under "" are for every policy that has plans.
	Limits map[string][]weir.Limit
}

// Clients say which client has which grant, now. A Set asks for each request: it must be quick, and bear concurrent calls.
type Clients interface {
	// Grant returns the client's grant; ok is false for one that has none, whose limits are the default ones. The Grant is not changed
	// after it was returned.
	Grant(client string) (g *Grant, ok bool)
	// Grants calls f for each different grant that clients have or may come to have, until it returns an error, which it then returns.
	Grants(f func(*Grant) error) error
}
