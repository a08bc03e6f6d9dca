package server

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
)

// AuditAccepted describes the file of the audit log.
const AuditAccepted = "a regular file that not everybody can read, or a new one"

// lookForChanges is the time between two looks for changes of the configuration. Changes of one
// source in this time are one record.
const lookForChanges = time.Second

// audited is the audit log, and the task that records changes of the configuration.
type audited struct {
	*audit.Log

	stop context.CancelFunc
	done sync.WaitGroup
}

// openAudit opens the audit log. It returns nil without one.
func (c Config) openAudit(panics *guard.Panics) (*audited, error) {
	if c.Audit == "" {
		return nil, nil //nolint:nilnil // documented
	}
	log, err := audit.Open(c.Audit, c.Log, panics)
	if file, ok := errors.AsType[*os.PathError](err); ok {
		return nil, &ConfigError{"audit", c.Audit, file.Err.Error(), AuditAccepted}
	}
	if err != nil {
		return nil, err
	}
	return &audited{Log: log}, nil
}

// log returns the log for the protocols, or nil.
func (a *audited) log() *audit.Log {
	if a == nil {
		return nil
	}
	return a.Log
}

// follow records changes until close, also after a panic.
func (a *audited) follow(status func() httpapi.Status, panics *guard.Panics) {
	ctx, stop := context.WithCancel(context.Background())
	a.stop = stop
	before := status()
	look := func() {
		now := status()
		recordChanges(a.Log, before, now)
		before = now
	}
	a.done.Go(func() {
		ticker := time.NewTicker(lookForChanges)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				panics.Safe("audit: changes", look)()
				return
			case <-ticker.C:
				panics.Safe("audit: changes", look)()
			}
		}
	})
}

// close records the last changes, and closes the log.
func (a *audited) close() error {
	if a == nil {
		return nil
	}
	if a.stop != nil {
		a.stop()
		a.done.Wait()
	}
	return a.Close()
}

// A source is the state of a source of the configuration.
type source struct {
	name, file   string
	entries      int
	loaded       time.Time
	refused      string
	refusedSince time.Time
}

// sourcesOf returns the sources of a status by their names.
func sourcesOf(s httpapi.Status) map[string]source {
	all := map[string]source{}
	add := func(one source) { all[one.name] = one }
	if c := s.Config; c != nil {
		add(source{name: "policies", file: c.Source, entries: c.Policies, loaded: c.Loaded, refused: c.Refused, refusedSince: c.RefusedSince})
	}
	if c := s.Clients; c != nil {
		add(source{name: "clients", file: c.Database, entries: c.Clients, loaded: c.Loaded, refused: c.Refused, refusedSince: c.RefusedSince})
	}
	if u := s.Users; u != nil {
		add(source{name: "users", file: u.Source, entries: u.Users, loaded: u.Loaded, refused: u.Refused, refusedSince: u.RefusedSince})
	}
	if c := s.Certificate; c != nil {
		add(source{name: "certificate", entries: len(c.Names), loaded: c.Loaded, refused: c.Refused, refusedSince: c.RefusedSince})
	}
	return all
}

// recordChanges records the changes between two statuses.
func recordChanges(log *audit.Log, before, now httpapi.Status) {
	old := sourcesOf(before)
	for _, s := range sourcesOf(now) {
		was, r := old[s.name], audit.Record{Event: audit.Change, Source: s.name, File: s.file}
		if !s.loaded.Equal(was.loaded) {
			r.Time, r.Count, r.Result = s.loaded, int64(s.entries), audit.OK
			log.Write(r)
		}
		if s.refused != "" && (s.refused != was.refused || !s.refusedSince.Equal(was.refusedSince) && was.refused == "") {
			r.Time, r.Count, r.Result, r.Detail = s.refusedSince, 0, audit.Refused, s.refused
			log.Write(r)
		}
	}
}
