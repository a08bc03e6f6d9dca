// Package server is the daemon: one store, and the protocols over which clients reach it.
//
// Each protocol has a folder that decodes, lets the limiters decide, and encodes. A key under a limit
// is the same key on all of them.
package server

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/certificates"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/proxied"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
)

// A Server is the daemon. New makes it, Open opens the store and listens, Run serves until its context ends, Close frees what
// Open took.
type Server struct {
	cfg       Config
	store     *kept
	policies  *ruled                     // nil: there are none
	fullness  *fullness                  // nil: the store is an engine
	certified *certificates.Certificates // nil: there is no TLS
	users     *access.Users              // nil: everybody may do everything
	audit     *audit.Log                 // nil: there is none
	tasks     *tasks
	outage    outage
	panics    *guard.Panics
	started   time.Time
	protocols []*protocol
	closing   sync.Once
}

// A protocol is one of the ways in.
type protocol struct {
	name     string // of the Config's field and of the flag
	address  string
	direct   bool // no proxy is in front of it, and at loopback it has no TLS
	accepts  *acceptor
	listener net.Listener      // nil until Open
	proxied  *proxied.Listener // that, if there are proxies that tell of clients; else nil
	shakes   *guard.Guard      // bounds the TLS handshakes; nil: there are none
	alpn     []string          // the application protocols of TLS, in order of preference
	plain    []byte            // the reply to clients without TLS, where there is TLS
	server   interface {
		Serve(net.Listener) error
		Shutdown(context.Context) error
	}
}

// New returns a server that does not listen yet. It refuses, as a *ConfigError, a configuration that makes no sense.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, panics: guard.NewPanics(cfg.Log)}
	s.tasks = newTasks(s.panics)
	s.outage.log, s.outage.onError = cfg.Log, cfg.OnStoreError
	return s, nil
}

// Open opens the store and listens on the addresses of the configuration. If the store's engine does not serve, it waits for it
// as WaitForStore sets, or as long as ctx says. When something can't be had it returns a *ConfigError that says what, and has taken nothing. A server
// opens once.
func (s *Server) Open(ctx context.Context) error {
	kept, err := s.cfg.open(ctx)
	if err != nil {
		return err
	}
	kept.observe()
	s.store, s.started = kept, time.Now()
	if s.cfg.Policies != "" {
		s.policies, err = s.cfg.openPolicies(ctx, kept, s.panics)
	}
	if err == nil {
		s.certified, err = s.cfg.openCertificates()
	}
	if err == nil {
		s.audit, err = s.cfg.openAudit(s.panics)
	}
	if err == nil {
		s.users, err = s.cfg.openUsers(s.audit)
	}
	if err == nil {
		s.build() //nolint:contextcheck // the protocols have a context of their own, which ends with them
		err = s.listen(ctx)
	}
	if err != nil {
		s.closeListeners()
		policies, audit := s.policies, s.audit
		s.store, s.policies, s.audit = nil, nil, nil
		return errors.Join(err, policies.close(), kept.close(), audit.Close())
	}
	s.cfg.logBounds(openFiles()) //nolint:contextcheck // a line in the log
	s.follow()
	s.outage.follow(s.store)
	return nil
}

// follow starts the tasks that follow the sources of the configuration.
func (s *Server) follow() {
	if s.store.memory != nil {
		s.fullness = &fullness{store: s.store.memory, log: s.cfg.Log}
		s.tasks.every(fullnessPeriod, "fullness", s.fullness.check)
	}
	if s.policies != nil {
		s.tasks.follow("policies: follow", func(ctx context.Context) error { return s.policies.set.Follow(ctx, s.policies.path) })
	}
	if s.certified != nil {
		s.tasks.follow("certificates: follow", s.certified.Follow)
	}
	if s.users != nil {
		s.tasks.follow("users: follow", s.users.Follow)
	}
	if s.audit != nil {
		before := s.Status()
		s.tasks.every(changePeriod, "audit: changes", func() {
			now := s.Status()
			recordChanges(s.audit, before, now)
			before = now
		})
	}
}

// Reload reads the policies, the certificates and the users again, and opens the audit log again, now, rather than after a change of their
// files is noticed. An invalid file is rejected, and its previous content stays in use; the error
// has the reason. Without such files Reload does nothing.
func (s *Server) Reload() (err error) {
	defer func() {
		if s.panics.Caught("reload", recover()) {
			err = errors.New("server: the reload panicked")
		}
	}()
	if s.policies != nil {
		err = s.policies.set.Reload(s.policies.path)
	}
	if s.certified != nil {
		err = errors.Join(err, s.certified.Reload())
	}
	if s.users != nil {
		err = errors.Join(err, s.users.Reload())
	}
	if s.audit != nil {
		err = errors.Join(err, s.audit.Reopen())
	}
	return err
}

// build makes the protocols over the store.
func (s *Server) build() {
	restrict, _ := s.cfg.rules() // New has refused an error
	cfg, set := s.cfg, limiters.NewRestricted(s.store.Store, restrict)
	stats := sources{
		store: s.store, policies: s.policies, panics: s.panics, certified: s.certified, users: s.users, audit: s.audit, shakes: s.handshakes, accepts: s.acceptFailures,
		durations: map[string]*latency.Decisions{}, protocols: map[string]func() operation.Stats{},
	}
	respBounds, httpBounds := cfg.connectionBounds(openFiles())
	if len(cfg.ProxyProtocolFrom) > 0 {
		stats.proxied = s.headersRefused
	}
	service := &operation.Service{
		Limiters: set, Users: s.users, Audit: s.audit, TrustClientTime: cfg.TrustClientTime, OnStoreError: cfg.OnStoreError,
		Waits: !cfg.inMemory(), Log: cfg.Log, Panics: s.panics,
	}
	if s.policies != nil {
		service.Policies = s.policies.set
	}
	if cfg.RESP != Off {
		r := resp.New(resp.Options{
			Service: service, Store: s.store.kind, Version: cfg.Version,
			MaxConnections: respBounds.total, MaxPerAddress: respBounds.perAddress, IdleTimeout: cfg.IdleTimeout,
		})
		s.add(&protocol{name: "resp", address: cfg.RESP, server: r, plain: resp.TLSRequired}, &stats)
	}
	if cfg.HTTP != Off {
		h := httpapi.New(s.httpOptions(service, httpBounds))
		s.add(&protocol{name: "http", address: cfg.HTTP, server: h, plain: httpapi.TLSRequired, alpn: httpALPN}, &stats)
	}
	if cfg.Admin != Off {
		registry := prometheus.NewRegistry()
		options := s.httpOptions(service, adminBounds(openFiles()))
		options.Admin, options.Status, options.Gatherer, options.IdleTimeout = true, s.Status, registry, 0
		h := httpapi.New(options)
		stats.admin = h.Stats
		register(registry, stats, cfg.Version)
		s.protocols = append(s.protocols, &protocol{name: "admin", address: cfg.Admin, server: h, direct: true, plain: httpapi.TLSRequired, alpn: httpALPN})
	}
}

// add adds a protocol that runs operations.
func (s *Server) add(p *protocol, stats *sources) {
	server, ok := p.server.(interface {
		Stats() operation.Stats
		Decisions() *latency.Decisions
	})
	if ok {
		stats.protocols[p.name], stats.durations[p.name] = server.Stats, server.Decisions()
		s.outage.counts = append(s.outage.counts, func() int64 { return server.Stats().Undecided })
	}
	s.protocols = append(s.protocols, p)
}

// ready returns an error if decisions can't be made. While the store fails, they can if nothing
// denies then.
func (s *Server) ready(ctx context.Context) error {
	err := s.store.check(ctx)
	if err != nil && s.cfg.OnStoreError != store.Deny && (s.policies == nil || s.policies.failOpen()) {
		return nil
	}
	return err
}

// httpALPN is without HTTP/2, whose requests of one connection have no bound of their own.
var httpALPN = []string{"http/1.1"}

// httpOptions returns the options that both servers of HTTP have.
func (s *Server) httpOptions(service *operation.Service, bounds connectionBounds) httpapi.Options {
	o := httpapi.Options{
		Service: service, Ready: s.ready, Hosts: s.cfg.HTTPHosts,
		MaxConnections: bounds.total, MaxPerAddress: bounds.perAddress, IdleTimeout: s.cfg.IdleTimeout,
	}
	if name, err := os.Hostname(); err == nil {
		o.Hosts = append([]string{name}, o.Hosts...)
	}
	return o
}

// acceptFailures counts the failed attempts to accept, by protocol.
func (s *Server) acceptFailures() map[string]int64 {
	counts := map[string]int64{}
	for _, p := range s.protocols {
		counts[p.name] = p.accepts.failures.Load()
	}
	return counts
}

// headersRefused counts the connections that were refused for their header of the PROXY protocol, by protocol.
func (s *Server) headersRefused() map[string]int64 {
	counts := map[string]int64{}
	for _, p := range s.protocols {
		if p.proxied != nil {
			counts[p.name] = p.proxied.Refused()
		}
	}
	return counts
}

// Store says where the state is kept, after Open: InMemory, or the URL of the engine without what may be secret.
func (s *Server) Store() string { return s.store.shown }

// Status tells what the server runs on, after Open, and what it follows and could not read.
func (s *Server) Status() httpapi.Status {
	status := httpapi.Status{Version: s.cfg.Version, Store: s.store.kind, Started: s.started, Full: s.fullness.full()}
	s.policies.status(&status)
	status.Certificate = certificateStatus(s.certified)
	if s.users != nil {
		now := s.users.Status()
		status.Users = &httpapi.UsersStatus{Source: now.Source, Users: now.Users, Change: httpapi.NewChange(now.Loaded, now.Err, now.Failed)}
	}
	status.EngineAway = s.outage.text()
	return status
}

// RESPAddr returns the address at which the Redis protocol is served, after Open. It is nil when that is off.
func (s *Server) RESPAddr() net.Addr { return s.addr("resp") }

// HTTPAddr returns the address at which HTTP is served, after Open. It is nil when that is off.
func (s *Server) HTTPAddr() net.Addr { return s.addr("http") }

// AdminAddr returns the address of the admin listener, after Open. It is nil when that is off.
func (s *Server) AdminAddr() net.Addr { return s.addr("admin") }

func (s *Server) addr(name string) net.Addr {
	for _, p := range s.protocols {
		if p.name == name && p.listener != nil {
			return p.listener.Addr()
		}
	}
	return nil
}

// Run serves until ctx ends or a protocol fails. It then stops accepting, lets what is in flight finish within the
// grace time, and closes what is left. It returns nil after ctx ended, else the failure. Open comes first;
// a server runs once.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, len(s.protocols))
	if len(s.protocols) == 0 {
		return errors.New("server: Run comes after Open")
	}
	for _, p := range s.protocols {
		go func() { failed <- p.serveSafely(s.panics) }()
	}
	running := len(s.protocols)
	var err error
	select {
	case <-ctx.Done():
		s.cfg.Log.Info("stopping", "grace", s.cfg.Grace)
	case err = <-failed:
		running--
	}
	s.shutdown(context.WithoutCancel(ctx))
	for range running {
		err = errors.Join(err, <-failed)
	}
	return err
}

// shutdown ends all protocols at the same time, so that they share the grace time.
func (s *Server) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Grace)
	defer cancel()
	start := time.Now()
	var all sync.WaitGroup
	for _, p := range s.protocols {
		all.Go(s.panics.Safe(p.name+": shutdown", func() {
			if err := p.server.Shutdown(ctx); err != nil {
				s.cfg.Log.Warn("grace time is over: connections were cut", "protocol", p.name, "error", err)
			}
		}))
	}
	all.Wait()
	s.cfg.Log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
}

// mostClosing bounds how long Close waits for a store whose engine does not answer.
const mostClosing = 3 * time.Second

// Close frees the addresses and the store. It may be called more than once, but not while Run runs. A store whose engine hangs is
// left to itself after three seconds, or after the grace time if that is shorter.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.closeListeners()
		s.tasks.close()
		err = errors.Join(s.audit.Close(), s.policies.close())
		if s.store != nil {
			err = errors.Join(err, s.closeStore())
		}
	})
	return err
}

func (s *Server) closeStore() error {
	closed := make(chan error, 1)
	go s.panics.Safe("store: close", func() { closed <- s.store.close() })()
	timer := time.NewTimer(min(mostClosing, s.cfg.Grace))
	defer timer.Stop()
	select {
	case err := <-closed:
		return err
	case <-timer.C:
		s.cfg.Log.Warn("the store's engine does not answer: its connections are left to it")
		return nil
	}
}

// closeListeners closes what a shutdown has not closed yet; that it has is no error.
func (s *Server) closeListeners() {
	for _, p := range s.protocols {
		if p.listener != nil {
			_ = p.listener.Close()
		}
	}
}
