// Package httplimit limits HTTP: middleware for servers, and a transport for clients that keeps to what servers say.
//
// [MustPerClient] limits each client by its address, in one line:
//
//	http.ListenAndServe(":8080", httplimit.MustPerClient("100/min")(mux))
//
// [New] makes the middleware of a limiter or of a set of policies, with options:
//
//	perClient, err := httplimit.New(limiter, httplimit.Options{})
//	…
//	http.ListenAndServe(":8080", perClient(mux))
//
// It is a func(http.Handler) http.Handler, and so goes wherever such a function goes. The page docs/middleware.md says what clients see.
package httplimit
