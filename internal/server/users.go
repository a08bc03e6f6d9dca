package server

import (
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
)

const (
	// UsersAccepted describes the file of users.
	UsersAccepted = "a file of users that not everybody can read, as weir users add makes it"
	// AuditAccepted describes the file of the audit log.
	AuditAccepted = "a regular file that not everybody can read, or a new one"
	// changePeriod is the time between two looks for changes of the configuration. Changes of one
	// source in this time are one record of the audit log.
	changePeriod = time.Second
)

// openUsers reads the file of users. It returns nil without one: everybody may do everything.
func (c Config) openUsers(log *audit.Log) (*access.Users, error) {
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
	return opened, fileError("users", c.Users, UsersAccepted, err)
}

// openAudit opens the audit log. It returns nil without one.
func (c Config) openAudit(panics *guard.Panics) (*audit.Log, error) {
	if c.Audit == "" {
		return nil, nil //nolint:nilnil // documented
	}
	log, err := audit.Open(c.Audit, c.Log, panics)
	return log, fileError("audit", c.Audit, AuditAccepted, err)
}

// fileError returns a *ConfigError for a file that can't be opened or read, and other errors as they
// are.
func fileError(field, path, accept string, err error) error {
	if file, ok := errors.AsType[*os.PathError](err); ok {
		return &ConfigError{field, path, file.Err.Error(), accept}
	}
	return err
}

// A source is the state of a source of the configuration.
type source struct {
	file    string
	entries int
	httpapi.Change
}

// sourcesOf returns the sources of a status by their names.
func sourcesOf(s httpapi.Status) map[string]source {
	all := map[string]source{}
	if c := s.Config; c != nil {
		all["policies"] = source{c.Source, c.Policies, c.Change}
	}
	if c := s.Clients; c != nil {
		all["clients"] = source{c.Database, c.Clients, c.Change}
	}
	if u := s.Users; u != nil {
		all["users"] = source{u.Source, u.Users, u.Change}
	}
	if c := s.Certificate; c != nil {
		all["certificate"] = source{"", len(c.Names), c.Change}
	}
	return all
}

// recordChanges writes the audit records of the changes between two statuses.
func recordChanges(log *audit.Log, before, now httpapi.Status) {
	old := sourcesOf(before)
	for name, s := range sourcesOf(now) {
		was, r := old[name], audit.Record{Event: audit.Change, Source: name, File: s.file}
		if !s.Loaded.Equal(was.Loaded) {
			r.Time, r.Count, r.Result = s.Loaded, int64(s.entries), audit.OK
			log.Write(r)
		}
		if s.Refused != "" && (s.Refused != was.Refused || was.Refused == "" && !s.RefusedSince.Equal(was.RefusedSince)) {
			r.Time, r.Count, r.Result, r.Detail = s.RefusedSince, 0, audit.Refused, s.Refused
			log.Write(r)
		}
	}
}
