package resp

import (
	"errors"
	"strings"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
)

// The replies of Redis.
const (
	noAuth     = "NOAUTH Authentication required."
	wrongPass  = "WRONGPASS invalid username-password pair or user is disabled."
	noKey      = "NOPERM No permissions to access a key"
	helloFirst = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
		"option can be used to authenticate the client and select the RESP protocol version at the same time"
	// noPassword is the reply to AUTH <password> without users. Here it is also the reply to AUTH
	// default <password>, so no client believes in a check of its password.
	noPassword = "ERR AUTH <password> called without any password configured for the default user. " +
		"Are you sure your configuration is correct?"

	// defaultUser is the user of AUTH <password>, and of all connections of a server without users.
	defaultUser = "default"
)

// openSession begins the session of a new connection, if there are users.
func (c *conn) openSession() {
	users := c.server.options.Users
	if users == nil {
		return
	}
	c.session = users.SessionOf(c.net)
	c.strangerSince.Store(c.created.UnixNano())
	c.identify()
}

// identify finds the user of the session, which the users file may have changed.
func (c *conn) identify() {
	user := c.session.User()
	if user == c.user {
		return
	}
	if c.user = user; user == nil {
		c.strangerSince.Store(time.Now().UnixNano())
		c.setUser("")
		return
	}
	c.strangerSince.Store(0)
	c.setUser(user.Name())
}

// setUser sets the user that CLIENT LIST shows.
func (c *conn) setUser(name string) {
	if a := *c.about.Load(); a.user != name {
		a.user = name
		c.about.Store(&a)
	}
}

// userName returns the user for CLIENT LIST. It may be called for the connection of another
// goroutine.
func (c *conn) userName(a *about) string {
	if c.server.options.Users == nil {
		return defaultUser
	}
	return a.user
}

// overdueLogin reports whether the connection has had no user for too long. It may be called for the
// connection of another goroutine.
func (c *conn) overdueLogin(now time.Time) bool {
	since := c.strangerSince.Load()
	return since != 0 && now.Sub(time.Unix(0, since)) >= c.server.options.AuthTimeout
}

// permits reports whether the user has the right to a command, and replies otherwise.
func (c *conn) permits(cmd *command) bool {
	switch c.identify(); {
	case cmd.public:
		return true
	case c.user == nil:
		c.fail(noAuth)
		return false
	case !c.user.Has(cmd.right):
		c.noPermission(cmd.name)
		return false
	}
	return true
}

func (c *conn) noPermission(command string) {
	c.fail("NOPERM User " + c.user.Name() + " has no permissions to run the '" + command + "' command")
}

// permitsKey reports whether the user has the right of the command to a key of a limiter, and replies
// otherwise.
func (c *conn) permitsKey(name, key string) bool {
	if c.session == nil || c.user.May(c.last.right, name, key) {
		return true
	}
	c.fail(noKey)
	return false
}

// auth is AUTH [user] secret.
func (c *conn) auth() {
	name, args := defaultUser, c.args[1:]
	switch len(args) {
	case 1:
	case 2:
		name, args = string(args[0]), args[1:]
	default:
		c.fail("ERR syntax error")
		return
	}
	if c.authenticate(name, string(args[0])) {
		c.out.ok()
	}
}

// authenticate makes the connection that of a user, or replies why not.
func (c *conn) authenticate(name, secret string) bool {
	if c.session == nil {
		if name == defaultUser {
			c.fail(noPassword)
		} else {
			c.fail(wrongPass)
		}
		return false
	}
	err := c.session.Login(c.server.ctx, name, secret)
	c.identify()
	switch {
	case err == nil:
		return true
	case errors.Is(err, access.ErrWrong):
		c.fail(wrongPass)
	default:
		c.fail("ERR " + strings.TrimPrefix(err.Error(), "access: "))
	}
	return false
}

// logout makes the connection that of its certificate again, or of nobody. It does not prolong the
// time without a user.
func (c *conn) logout() {
	if c.session == nil {
		return
	}
	c.session.Logout()
	c.identify()
	if c.user != nil {
		c.setUser(c.user.Name())
	}
}

// acl is ACL WHOAMI.
func (c *conn) acl() {
	switch {
	case !c.is(c.args[1], "WHOAMI") || len(c.args) != 2:
		c.fail("ERR unknown subcommand or wrong number of arguments for " + excerpt(c.args[1]) + "; accepted: WHOAMI")
	case c.session == nil:
		c.out.bulk(defaultUser)
	default:
		c.out.bulk(c.user.Name())
	}
}
