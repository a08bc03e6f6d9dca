// Package access is the users of the daemon: who may use which verbs on which names and keys, by one
// table for all protocols.
//
// [Open] reads the users from a file, and follows it. A [Session] is the authentication of one
// connection; [User.May] decides on each verb.
package access

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/internal/follow"
)

// Options for Open. The zero value is good for tests.
type Options struct {
	// Log receives the changes of the file. Nil: none.
	Log *slog.Logger
	// Refused, if not nil, is called for each refused login. name is as the client sent it, and may
	// be a secret. It must not block.
	Refused func(name string, from net.Addr, err error)
}

// Users are the users of a file, which is followed. They may be used by many goroutines at once.
type Users struct {
	path    string
	options Options
	table   atomic.Pointer[Table]
	key     [32]byte // of the digests of verified secrets; random
	logins  logins
	refused atomic.Int64 // logins
	seen    [32]byte     // the digest of the content that Open read

	mu     sync.Mutex // of reloads
	status Status
}

// A Status describes the users in use.
type Status struct {
	Source string
	Users  int
	Loaded time.Time
	// Err is the error of the last change, at Failed. It is nil if the change is in use.
	Err    error
	Failed time.Time
}

// Open reads the users file. A file that everybody can read or write is an error, and so is an
// invalid file, as a FileError.
func Open(path string, o Options) (*Users, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refused == nil {
		o.Refused = func(string, net.Addr, error) {}
	}
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	table, err := Parse(data, path)
	if err != nil {
		return nil, err
	}
	u := &Users{path: path, options: o, seen: follow.Digest(data, nil)}
	_, _ = rand.Read(u.key[:]) // never fails
	u.logins.init()
	u.status = Status{Source: path, Users: table.Len(), Loaded: time.Now()}
	u.table.Store(table)
	return u, nil
}

func read(path string) ([]byte, error) { return follow.ReadSecret(path, maxFile) }

// Load is the content of a users file, as Open reads it.
func Load(path string) (*Table, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(data, path)
}

// Table returns the table in use.
func (u *Users) Table() *Table { return u.table.Load() }

// Status returns the state of the file. It is the zero Status for nil.
func (u *Users) Status() Status {
	if u == nil {
		return Status{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// RefusedLogins returns the number of refused logins.
func (u *Users) RefusedLogins() int64 { return u.refused.Load() }

// refuse counts and reports a refused login.
func (u *Users) refuse(name string, from net.Addr, err error) {
	u.refused.Add(1)
	u.options.Refused(name, from, err)
}

// Follow reads the file again when it changes, until ctx ends; it returns ctx's error. An invalid
// file is rejected as a whole, and logged once; the users in use stay.
func (u *Users) Follow(ctx context.Context) error {
	return follow.Follow(ctx, u.file())
}

// file returns the file to follow.
func (u *Users) file() follow.File {
	return follow.File{
		Path: u.path,
		Read: func(ctx context.Context) ([]byte, error) {
			return follow.Within(ctx, func() ([]byte, error) { return read(u.path) })
		},
		Apply: func(data []byte, err error) error { return u.apply(data, err, false) },
		Seen:  u.seen,
		Log:   u.options.Log,
	}
}

// Reload reads the file now. A rejected change is logged also if the reason is known.
func (u *Users) Reload() error {
	data, err := follow.ReadSteady(func() ([]byte, error) { return read(u.path) })
	return u.apply(data, err, true)
}

// apply makes the content the table in use, or rejects it.
func (u *Users) apply(data []byte, err error, always bool) error {
	var table *Table
	if err == nil {
		table, err = Parse(data, u.path)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		known := u.status.Err != nil && u.status.Err.Error() == err.Error()
		u.status.Err, u.status.Failed = err, time.Now()
		if !known || always {
			u.options.Log.Error("a change was refused; what was in use stays", "of", "users", "source", u.path, "error", err)
		}
		return err
	}
	table.inherit(u.table.Load())
	u.table.Store(table)
	u.status = Status{Source: u.path, Users: table.Len(), Loaded: time.Now()}
	u.options.Log.Info("a change is in use", "of", "users", "source", u.path, "users", table.Len())
	return nil
}

// inherit takes over the verifications of secrets that the table before has.
func (t *Table) inherit(before *Table) {
	for name, u := range t.users {
		for _, s := range u.secrets {
			if old := before.users[name].secret(s.hash.text); old != nil {
				s.verified.Store(old.verified.Load())
			}
		}
	}
}

// Errors of a login.
var (
	// ErrWrong is the error for an unknown name, a wrong secret, and a user that is off.
	ErrWrong = errors.New("access: wrong user or secret")
	// ErrBusy is the error for a login for which too many others wait.
	ErrBusy = errors.New("access: too many logins at once")
	// ErrTwoUsers is the error for a certificate with names of two users.
	ErrTwoUsers = errors.New("access: the certificate has names of two users")
)

// A LimitError is the error for a login after too many failed ones from the same network.
type LimitError struct {
	// RetryAfter is the time until the next attempt.
	RetryAfter time.Duration
}

// Error implements error.
func (e *LimitError) Error() string {
	return "access: too many failed logins, try again in " + (e.RetryAfter + time.Second - 1).Truncate(time.Second).String()
}
