package server

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/internal/follow"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store"
)

// ruled are the policies, and their clients.
type ruled struct {
	set     *policy.Set
	path    string
	clients *clients.Follower // nil: there is no database of them
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
		return nil, fileError("config", c.Policies, "a file of policies", err)
	}
	r := &ruled{set: set, path: c.Policies}
	if err := r.openClients(ctx, c, panics); err != nil {
		return nil, err
	}
	return r, nil
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

// close ends the following of the clients.
func (r *ruled) close() error {
	if r == nil || r.clients == nil {
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
	s.Config = &httpapi.ConfigStatus{Source: c.Config.Source, Policies: c.Policies, Change: httpapi.NewChange(c.Config.Loaded, c.Config.Err, c.Config.Failed)}
	if r.clients == nil {
		return
	}
	f := r.clients.Status()
	s.Clients = &httpapi.ClientsStatus{
		Database: f.Database, Clients: f.Clients, Away: f.Away, AwaySince: f.Since,
		BadRows: f.BadRows, BadRowsSince: f.BadRowsSince, BadRowErrors: f.BadRowErrors,
		Change: httpapi.Change{Loaded: f.Change, Refused: f.Refused, RefusedSince: f.RefusedSince}, FromSnapshot: f.FromSnapshot, Saved: f.Saved, SaveError: f.SaveError,
	}
}

// failOpen reports whether no policy denies while the store fails.
func (r *ruled) failOpen() bool {
	return !slices.ContainsFunc(r.set.Config().Policies, func(p policy.Policy) bool {
		on, err := store.ParseOnError(p.OnStoreError)
		return err != nil || on == store.Deny // "" is deny
	})
}

const (
	maxTokenKey = 4096 // bytes of a file
	keyAccepted = "a file of 32 to 4096 random bytes that not everybody can read, as head -c 32 /dev/urandom > FILE makes after umask 077"
)

// checkTokenKeys checks TokenKeys before their files are read.
func (c Config) checkTokenKeys() error {
	switch {
	case len(c.TokenKeys) == 0:
		return nil
	case c.Policies == "":
		return &ConfigError{"token-key", strconv.Quote(c.TokenKeys[0]), "there are no policies whose tokens it would encrypt", "nothing, or config too"}
	case slices.Contains(c.TokenKeys, ""):
		return &ConfigError{"token-key", `""`, "empty", keyAccepted}
	case len(c.TokenKeys) > policy.MaxTokenKeys:
		return &ConfigError{"token-key", fmt.Sprintf("%d files", len(c.TokenKeys)), "too many", fmt.Sprintf("up to %d files", policy.MaxTokenKeys)}
	}
	return nil
}

// tokenKeys reads the files of keys that encrypt tokens. A key is all bytes of its file.
func (c Config) tokenKeys() (keys [][]byte, err error) {
	for _, path := range c.TokenKeys {
		key, err := readTokenKey(path)
		if err != nil {
			return nil, fileError("token-key", path, keyAccepted, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func readTokenKey(path string) ([]byte, error) {
	key, err := follow.ReadSecret(path, maxTokenKey)
	if err == nil && len(key) < policy.MinTokenKey {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("%d bytes", len(key))}
	}
	return key, err
}
