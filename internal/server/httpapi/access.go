package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/policy"
)

// rights are the rights of the paths. public is for clients without a user too.
var rights = map[string]access.Right{
	"/healthz": public, "/readyz": public, "/openapi.yaml": access.None,

	"/v1/take": access.Take, "/v1/take-up-to": access.Take, "/v1/peek": access.Take,
	"/v1/refund": access.Refund, "/v1/reset": access.Refund,
	"/v1/check": access.Check, "/v1/release": access.Check, "/v1/commit": access.Check, "/v1/cancel": access.Check, "/v1/renew": access.Check,

	"/metrics": access.Admin, "/v1/status": access.Admin, "/v1/explain": access.Admin,
	"/debug/pprof/": access.Admin, "/debug/pprof/profile": access.Admin, "/debug/pprof/trace": access.Admin,
	"/debug/pprof/allocs": access.Admin, "/debug/pprof/goroutine": access.Admin, "/debug/pprof/heap": access.Admin,
}

// public is no right.
const public access.Right = 1 << 7

// rightOf returns the right of a path. A path that is not listed needs all of them.
func rightOf(path string) access.Right {
	if right, ok := rights[path]; ok {
		return right
	}
	return access.All
}

// sessionKey and userKey are the keys of a session in the context of a connection, and of a user in
// the context of a request.
type sessionKey struct{}

type userKey struct{}

// connContext begins the session of a connection, if there are users.
func (s *Server) connContext(ctx context.Context, c net.Conn) context.Context {
	if s.opts.Users == nil {
		return ctx
	}
	var state *tls.ConnectionState
	if secure, ok := c.(secured); ok {
		now := secure.ConnectionState()
		state = &now
	}
	return context.WithValue(ctx, sessionKey{}, s.opts.Users.Session(c.RemoteAddr(), state))
}

// authenticate returns the request with its user, or the reason why there is none. Without users it
// returns the request.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, right access.Right) (*http.Request, *Problem) {
	if s.opts.Users == nil || right == public {
		return r, nil
	}
	session, ok := r.Context().Value(sessionKey{}).(*access.Session)
	if !ok { // another server called ServeHTTP
		session = s.opts.Users.Session(remote(r), r.TLS)
	}
	user, err := identify(r, session)
	switch limit, limited := errors.AsType[*access.LimitError](err); {
	case limited:
		return r, later(w, http.StatusTooManyRequests, limit.RetryAfter, err)
	case err != nil && !errors.Is(err, access.ErrWrong):
		return r, later(w, http.StatusServiceUnavailable, time.Second, access.ErrBusy)
	case user == nil:
		return r, unauthorized(w, err)
	case !user.Has(right):
		return r, &Problem{Status: http.StatusForbidden, Detail: "the user does not have the right " + right.String()}
	}
	return r.WithContext(context.WithValue(r.Context(), userKey{}, user)), nil
}

// identify returns the user of a request: of its Authorization, or without one of the certificate of
// the connection.
func identify(r *http.Request, session *access.Session) (*access.User, error) {
	fields := r.Header["Authorization"]
	if len(fields) == 0 {
		return session.User(), nil
	}
	name, secret, ok := credentials(r)
	if !ok || len(fields) > 1 {
		return nil, access.ErrWrong
	}
	return session.Verify(r.Context(), name, secret)
}

// credentials returns the name and the secret of a request: Basic, or Bearer with a token of the
// name, ~ and the secret. A name has no ~, which tokens may have and : not.
func credentials(r *http.Request) (name, secret string, ok bool) {
	if name, secret, ok = r.BasicAuth(); ok {
		return name, secret, true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", "", false
	}
	return strings.Cut(strings.TrimSpace(token), "~")
}

// challenges are the ways to authenticate.
var challenges = []string{`Basic realm="weir", charset="UTF-8"`, `Bearer realm="weir"`}

// unauthorized returns the problem of a request without a user. The connection ends: a stranger
// keeps none.
func unauthorized(w http.ResponseWriter, err error) *Problem {
	h := w.Header()
	h["Www-Authenticate"] = challenges
	h.Set("Connection", "close")
	detail := "a user is required: Basic, Bearer user~secret, or a client certificate"
	if err != nil {
		detail = strings.TrimPrefix(err.Error(), "access: ")
	}
	return &Problem{Status: http.StatusUnauthorized, Detail: detail}
}

func later(w http.ResponseWriter, status int, after time.Duration, err error) *Problem {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(after.Seconds())))))
	w.Header().Set("Connection", "close")
	return &Problem{Status: status, Detail: strings.TrimPrefix(err.Error(), "access: ")}
}

// forbids returns a problem if the user of the request has no right to a key of a limiter.
func (s *Server) forbids(r *http.Request, right access.Right, name, key string) *Problem {
	if s.opts.Users == nil || userOf(r).May(right, name, key) {
		return nil
	}
	return &Problem{Status: http.StatusForbidden, Detail: "the user does not have the right " + right.String() + " for this name and key"}
}

// restrict makes a check one of the user's policies and keys.
func (s *Server) restrict(r *http.Request, q *policy.Request) {
	if s.opts.Users == nil {
		return
	}
	user := userOf(r)
	q.May = func(policy, key string) bool { return user.May(access.Check, policy, key) }
}

// userOf returns the user of a request, or nil, who may do nothing.
func userOf(r *http.Request) *access.User {
	user, _ := r.Context().Value(userKey{}).(*access.User)
	return user
}

// remote returns the address of the client of a request.
func remote(r *http.Request) net.Addr {
	address, _ := netip.ParseAddrPort(r.RemoteAddr)
	return net.TCPAddrFromAddrPort(address)
}

// audit records an operation that gave units back.
func (s *Server) audit(r *http.Request, op operation, q request, err error) {
	if s.opts.Audit == nil || rightOf(r.URL.Path) != access.Refund {
		return
	}
	record := audit.Record{Event: op.name, Protocol: s.name, From: r.RemoteAddr, Name: q.name, Limit: q.limit, Key: q.key, Result: audit.OK}
	if op.costs {
		record.Units = q.cost
	}
	if user := userOf(r); user != nil {
		record.User = user.Name()
	}
	if err != nil {
		record.Result = audit.Failed
	}
	s.opts.Audit.Write(record)
}
