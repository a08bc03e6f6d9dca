package httpapi

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
)

// sessionKey and userKey are the keys of a session in the context of a connection, and of a user in
// the context of a request.
type sessionKey struct{}

type userKey struct{}

// connContext begins the session of a connection, if there are users.
func (s *Server) connContext(ctx context.Context, c net.Conn) context.Context {
	if s.opts.Users == nil {
		return ctx
	}
	return context.WithValue(ctx, sessionKey{}, s.opts.Users.SessionOf(c))
}

// authenticate returns the request with its user, or the reason for which the user may not use the
// route. Without users it returns the request. An unknown path is for any user.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, to route) (*http.Request, *Problem) {
	if s.opts.Users == nil || to.public {
		return r, nil
	}
	right := to.right
	if right == access.None && !to.anyUser && to.serve != nil {
		right = access.All
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
