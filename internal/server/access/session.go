package access

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
)

// A Session is the authentication of one connection. It may be used by one goroutine at a time.
type Session struct {
	users *Users
	from  net.Addr
	certs []Identity

	table  *Table // in which user was found
	user   *User  // nil: nobody
	secret *secret
}

// Session returns the session of a new connection from an address. state is the state of its TLS
// connection after the handshake, or nil. A certificate with a name of one user authenticates the
// connection; with names of two users the certificate authenticates nobody.
func (u *Users) Session(from net.Addr, state *tls.ConnectionState) *Session {
	s := &Session{users: u, from: from, certs: identities(state), table: u.table.Load()}
	var err error
	if s.user, err = s.table.certified(s.certs); err != nil {
		u.refuse("", from, err)
	}
	return s
}

// SessionOf returns the session of a new connection, which may be one of TLS after its handshake.
func (u *Users) SessionOf(c net.Conn) *Session {
	if secure, ok := c.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		return u.Session(c.RemoteAddr(), &state)
	}
	return u.Session(c.RemoteAddr(), nil)
}

// certified returns the user that the names of a certificate name, or nil.
func (t *Table) certified(names []Identity) (user *User, err error) {
	for _, id := range names {
		switch owner := t.certs[id]; {
		case owner == nil || owner == user:
		case user != nil:
			return nil, ErrTwoUsers
		default:
			user = owner
		}
	}
	if user != nil && !user.on {
		return nil, nil //nolint:nilnil // nobody is no error
	}
	return user, nil
}

// User returns the user of the connection, or nil. A change of the users file takes effect at once: the
// session of a user who is gone or off, or whose secret is gone, ends.
func (s *Session) User() *User {
	if t := s.users.table.Load(); t != s.table {
		s.renew(t)
	}
	return s.user
}

// renew finds the user in a table.
func (s *Session) renew(t *Table) {
	s.table = t
	if s.secret != nil {
		user := t.users[s.user.name]
		if kept := user.secret(s.secret.hash.text); kept != nil && user.on {
			s.user, s.secret = user, kept
			return
		}
		s.secret = nil
	}
	s.user, _ = t.certified(s.certs)
}

// Login authenticates the connection as the user of a name and a secret. After an error, which is as
// of [Users.Login], the session is as before.
func (s *Session) Login(ctx context.Context, name, secret string) error {
	user, proof, err := s.users.login(ctx, name, secret, s.from)
	if err != nil {
		return err
	}
	// the table may be newer than the login: User then finds the user again
	s.table, s.user, s.secret = nil, user, proof
	return nil
}

// Logout ends the login: the session is that of the certificate again.
func (s *Session) Logout() {
	s.secret = nil
	s.renew(s.users.table.Load())
}

// Verify returns the user of a name and a secret that one request brings. The session stays as it
// is. The error is as of [Users.Login].
func (s *Session) Verify(ctx context.Context, name, secret string) (*User, error) {
	return s.users.Login(ctx, name, secret, s.from)
}

// An Identity is a name in a client certificate: the common name of the subject, or a DNS name, URI
// or email address of the subject alternative names. Names are compared as texts, DNS names in
// lower case; a name with a wildcard is the text.
type Identity struct {
	Kind string // cn, dns, uri or email
	Name string
}

// identityKinds are the kinds of names in certificates.
var identityKinds = []string{"cn", "dns", "uri", "email"}

func newIdentity(kind, name string) Identity {
	if kind == "dns" {
		name = strings.ToLower(name)
	}
	return Identity{kind, name}
}

// identities returns the names in the certificate that the client proved to have. Without a
// certificate that an accepted authority signed, there are none.
func identities(state *tls.ConnectionState) (list []Identity) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return nil
	}
	cert := state.VerifiedChains[0][0]
	add := func(kind, name string) {
		if name != "" {
			list = append(list, newIdentity(kind, name))
		}
	}
	add("cn", cert.Subject.CommonName)
	for _, name := range cert.DNSNames {
		add("dns", name)
	}
	for _, uri := range cert.URIs {
		add("uri", uri.String())
	}
	for _, address := range cert.EmailAddresses {
		add("email", address)
	}
	return list
}
