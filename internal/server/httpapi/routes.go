package httpapi

import (
	_ "embed"
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/operation"
)

// A route is what a path answers to. Its serve either writes an answer or returns a problem, not both.
type route struct {
	method  string // GET stands for HEAD too
	serve   func(http.ResponseWriter, *http.Request) *Problem
	right   access.Right // None: all of them, unless it is for any user or public
	anyUser bool
	public  bool // for clients without a user too
}

func (r route) accepts(method string) bool {
	return method == r.method || method == http.MethodHead && r.method == http.MethodGet
}

func (r route) allow() string {
	if r.method == http.MethodGet {
		return "GET, HEAD"
	}
	return r.method
}

//go:embed openapi.yaml
var openAPI []byte

func (s *Server) newRoutes() (own, elsewhere map[string]route) {
	own, elsewhere = s.decisionRoutes(), s.adminRoutes()
	if s.opts.Admin {
		own, elsewhere = elsewhere, own
	}
	own["/healthz"] = route{method: http.MethodGet, public: true, serve: static("text/plain; charset=utf-8", []byte("ok\n"))}
	own["/readyz"] = route{method: http.MethodGet, public: true, serve: s.ready}
	own["/openapi.yaml"] = route{method: http.MethodGet, anyUser: true, serve: static("application/yaml", openAPI)}
	return own, elsewhere
}

// decisionRoutes are the routes of clients: the operations.
func (s *Server) decisionRoutes() map[string]route {
	routes := map[string]route{}
	for _, o := range operation.List {
		serve := s.operate(o)
		if o.Form != operation.OneLimit {
			serve = s.withPolicies(serve)
		}
		if o.Path != "" {
			routes[o.Path] = route{method: http.MethodPost, serve: serve, right: o.Right}
		}
	}
	return routes
}

// adminRoutes are the routes of an operator.
func (s *Server) adminRoutes() map[string]route {
	metrics := promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes})
	routes := map[string]route{
		"/metrics": {method: http.MethodGet, serve: func(w http.ResponseWriter, r *http.Request) *Problem {
			metrics.ServeHTTP(w, r)
			return nil
		}},
		"/v1/status":  {method: http.MethodGet, serve: s.status},
		"/v1/explain": {method: http.MethodPost, serve: s.withPolicies(s.explain)},
	}
	for path, serve := range s.profiles.routes() {
		routes[path] = route{method: http.MethodGet, serve: serve}
	}
	for path, r := range routes {
		r.right = access.Admin
		routes[path] = r
	}
	return routes
}

// withPolicies refuses requests where there are no policies.
func (s *Server) withPolicies(serve func(http.ResponseWriter, *http.Request) *Problem) func(http.ResponseWriter, *http.Request) *Problem {
	if s.opts.Policies != nil {
		return serve
	}
	return func(http.ResponseWriter, *http.Request) *Problem {
		return &Problem{Status: http.StatusNotFound, Detail: operation.NoPolicies}
	}
}

// maxScrapes is how many requests for the metrics are served at once.
const maxScrapes = 4

func static(contentType string, body []byte) func(http.ResponseWriter, *http.Request) *Problem {
	return func(w http.ResponseWriter, _ *http.Request) *Problem {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(body)
		return nil
	}
}

// The header fields of every reply, shared and never changed. No reply has a field of CORS.
var (
	noSniff = []string{"nosniff"}
	noStore = []string{"no-store"}
)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.counts.Add(operation.Counts{Requests: 1})
	defer func() { s.recovered(recover(), r) }()
	h := w.Header()
	h["X-Content-Type-Options"], h["Cache-Control"] = noSniff, noStore
	if p := s.serve(w, r); p != nil {
		s.counts.Add(operation.Counts{Errors: 1})
		p.write(w)
	}
}

// recovered takes the result of a recover. After a panic net/http closes the connection.
func (s *Server) recovered(value any, r *http.Request) {
	err, _ := value.(error)
	switch {
	case value == nil:
		return
	case !errors.Is(err, http.ErrAbortHandler): // which is meant, and not of interest
		s.opts.Panics.Caught(s.name+": request", value)
		s.connections.guard.Count(guard.Panic, r.RemoteAddr)
	}
	panic(http.ErrAbortHandler)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) *Problem {
	if p := s.checkBrowser(r); p != nil {
		return p
	}
	route, ok := s.routes[r.URL.Path]
	r, p := s.authenticate(w, r, route)
	if p != nil {
		return p
	}
	switch {
	case !ok:
		p := refuse("path", r.URL.Path, s.pathAccepted(r.URL.Path))
		p.Status = http.StatusNotFound
		return p
	case !route.accepts(r.Method):
		w.Header().Set("Allow", route.allow())
		p := refuse("method", r.Method, route.allow())
		p.Status = http.StatusMethodNotAllowed
		return p
	}
	return route.serve(w, r)
}

// pathAccepted describes the paths that would do in place of an unknown path.
func (s *Server) pathAccepted(path string) string {
	_, ok := s.elsewhere[path]
	switch {
	case ok && s.opts.Admin:
		return "this path where clients are served (weir serve --http)"
	case ok:
		return "this path on the admin listener (weir serve --admin)"
	}
	return "the paths that /openapi.yaml describes"
}
