package server

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
)

// UsersAccepted describes the file of users.
const UsersAccepted = "a file of users that not everybody can read, as weir users add makes it"

// users are the users, and the task that follows their file.
type users struct {
	*access.Users

	stop context.CancelFunc
	done sync.WaitGroup
}

// openUsers reads the file of users. It returns nil without one.
func (c Config) openUsers(log *audit.Log) (*users, error) {
	if c.Users == "" {
		return nil, nil //nolint:nilnil // documented
	}
	var opened *access.Users
	refused := func(name string, from net.Addr, err error) {
		if opened != nil && opened.Table().User(name) == nil { // it may be a secret
			name = identity.Mask(name)
		}
		log.Write(audit.Record{Event: audit.Login, User: name, From: from.String(), Result: audit.Refused, Detail: strings.TrimPrefix(err.Error(), "access: ")})
	}
	opened, err := access.Open(c.Users, access.Options{Log: c.Log, Refused: refused})
	if file, ok := errors.AsType[*os.PathError](err); ok {
		return nil, &ConfigError{"users", c.Users, file.Err.Error(), UsersAccepted}
	}
	if err != nil {
		return nil, err
	}
	return &users{Users: opened}, nil
}

// table returns the users for the protocols: nil if everybody may do everything.
func (u *users) table() *access.Users {
	if u == nil {
		return nil
	}
	return u.Users
}

// follow follows the file until close, also after a panic.
func (u *users) follow(panics *guard.Panics) {
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	u.done.Go(func() {
		for ctx.Err() == nil {
			panics.Safe("users: follow", func() { _ = u.Follow(ctx) })()
			select {
			case <-ctx.Done():
			case <-time.After(followAgain):
			}
		}
	})
}

// close ends follow.
func (u *users) close() {
	if u != nil && u.stop != nil {
		u.stop()
		u.done.Wait()
	}
}

// status adds the users to a status.
func (u *users) status(s *httpapi.Status) {
	if u == nil {
		return
	}
	now := u.Status()
	s.Users = &httpapi.UsersStatus{Source: now.Source, Users: now.Users, Loaded: now.Loaded}
	if now.Err != nil {
		s.Users.Refused, s.Users.RefusedSince = now.Err.Error(), now.Failed
	}
}
