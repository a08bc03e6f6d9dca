package server

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store"
)

// ruled are the policies, and what follows their sources.
type ruled struct {
	set     *policy.Set
	path    string
	clients *clients.Follower // nil: there is no database of them
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// openPolicies loads the policies and the clients of the configuration over the store, and follows the clients.
func (c Config) openPolicies(ctx context.Context, k *kept, panics *guard.Panics) (*ruled, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	keys, err := c.tokenKeys()
	if err != nil {
		return nil, err
	}
	set, err := policy.Load(ctx, c.Policies, policy.Options{Store: k.Store, Log: c.Log, TokenKeys: keys})
	if err != nil {
		return nil, policiesError(c.Policies, err)
	}
	r := &ruled{set: set, path: c.Policies}
	if err := r.openClients(ctx, c, panics); err != nil {
		return nil, err
	}
	return r, nil
}

// policiesError names the flag if the file can't be read. What is wrong within it has a file and a line by itself.
func policiesError(path string, err error) error {
	if file, ok := errors.AsType[*os.PathError](err); ok {
		return &ConfigError{"config", path, file.Err.Error(), "a file of policies"}
	}
	return err
}

func (r *ruled) openClients(ctx context.Context, c Config, panics *guard.Panics) error {
	source := r.set.Config().Clients
	url, snapshot := cmp.Or(c.Clients, source.Database), cmp.Or(c.ClientsSnapshot, source.Snapshot)
	if url == "" {
		if snapshot != "" {
			return &ConfigError{"clients-snapshot", snapshot, "there is no database of clients", "nothing, or clients too"}
		}
		return nil
	}
	poll, err := time.ParseDuration(cmp.Or(source.Poll, "0"))
	if err != nil {
		return err
	}
	if warning := engines.Warning(url); warning != "" {
		c.Log.Warn("clients: "+warning, "database", engines.Shown(url))
	}
	r.clients, err = clients.Follow(ctx, url, clients.Options{Policies: r.set, Snapshot: snapshot, Poll: poll, Log: c.Log,
		Panicked: func(task string, value any) { panics.Caught(task, value) },
	})
	return err
}

// follow follows the file of policies, until close, also after a panic.
func (r *ruled) follow(panics *guard.Panics) {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() {
		for ctx.Err() == nil {
			// until ctx ends, which is no error
			panics.Safe("policies: follow", func() { _ = r.set.Follow(ctx, r.path) })()
			select {
			case <-ctx.Done():
			case <-time.After(followAgain):
			}
		}
	})
}

// followAgain is how long after a panic the file of policies is followed again.
const followAgain = time.Second

// close ends what follows.
func (r *ruled) close() error {
	if r == nil {
		return nil
	}
	if r.stop != nil {
		r.stop()
	}
	r.done.Wait()
	if r.clients == nil {
		return nil
	}
	return r.clients.Close()
}

// status tells of the policies and the clients.
func (r *ruled) status(s *httpapi.Status) {
	if r == nil {
		return
	}
	c := r.set.Status()
	s.Config = &httpapi.ConfigStatus{Source: c.Config.Source, Policies: c.Policies, Loaded: c.Config.Loaded}
	if c.Config.Err != nil {
		s.Config.Refused, s.Config.RefusedSince = c.Config.Err.Error(), c.Config.Failed
	}
	if r.clients == nil {
		return
	}
	f := r.clients.Status()
	s.Clients = &httpapi.ClientsStatus{
		Database: f.Database, Clients: f.Clients, Loaded: f.Change, Away: f.Away, AwaySince: f.Since,
		BadRows: f.BadRows, BadRowsSince: f.BadRowsSince, BadRowErrors: f.BadRowErrors,
		Refused: f.Refused, RefusedSince: f.RefusedSince, FromSnapshot: f.FromSnapshot, Saved: f.Saved, SaveError: f.SaveError,
	}
}

// failOpen reports whether no policy denies while the store fails.
func (r *ruled) failOpen() bool {
	return !slices.ContainsFunc(r.set.Config().Policies, func(p policy.Policy) bool {
		on, err := store.ParseOnError(p.OnStoreError)
		return err != nil || on == store.Deny // "" is deny
	})
}
