package httplimit

import (
	"fmt"
	"net/http"

	"github.com/weirlimit/weir"
)

// PerClient returns middleware with a limit, such as "100/min", for each client, by the address of
// the connection's peer, with state in memory. It is short for [weir.ParseLimit], [weir.New] and
// New with the zero Options. Behind a proxy all clients count as one client: use New there, with
// [Options.ClientIP]. The error is a [*weir.LimitError].
func PerClient(limit string) (func(http.Handler) http.Handler, error) {
	parsed, err := weir.ParseLimit(limit)
	if err != nil {
		return nil, err
	}
	limiter, err := weir.New(parsed)
	if err != nil {
		return nil, err
	}
	return New(limiter, Options{})
}

// MustPerClient is PerClient for a text in the program, as regexp.MustCompile is for a pattern. It
// panics on an invalid text:
//
//	http.ListenAndServe(":8080", httplimit.MustPerClient("100/min")(mux))
func MustPerClient(limit string) func(http.Handler) http.Handler {
	middleware, err := PerClient(limit)
	if err != nil {
		panic(fmt.Errorf("httplimit: MustPerClient(%.200q): %w", limit, err))
	}
	return middleware
}
