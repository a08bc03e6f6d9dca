// Package httplimit limits HTTP: middleware for servers, and a transport for clients that keeps to what servers say.
//
// [New] makes the middleware of a limiter or of a set of policies:
//
//	perClient, err := httplimit.New(limiter, httplimit.Options{})
//	…
//	http.ListenAndServe(":8080", perClient(mux))
//
// It is a func(http.Handler) http.Handler, and so goes wherever such a function goes. The page docs/middleware.md says what clients see.
package httplimit
