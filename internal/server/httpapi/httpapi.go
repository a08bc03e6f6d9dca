// Package httpapi serves weir's decisions over HTTP, as JSON: decode, decide, encode, nothing else.
//
// openapi.yaml describes it; the server hands that file out at /openapi.yaml. A denial is an answer like any other
// (status 200, "allowed": false). Everything else that goes wrong is a problem document of RFC 9457.
package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/operation"
)

// Bounds on what one client can make the server hold or wait for.
const (
	// MaxBody is the largest request body, in bytes.
	MaxBody = 64 << 10
	// MaxHeader is the largest request header, in bytes.
	MaxHeader = 16 << 10
	// DefaultMaxConnections is the number of connections that are served at once, unless Options says otherwise.
	DefaultMaxConnections = 10_000

	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 30 * time.Second
	idleTimeout   = 2 * time.Minute
)

// Options for New.
type Options struct {
	// Service runs the operations. Required; with Admin without Limiters.
	*operation.Service
	// Admin serves an operator: metrics, status, explanations and profiles take the place of the
	// decisions. Health and the description are served either way.
	Admin bool
	// Status returns the status for /v1/status; /readyz lists its warnings with Admin. Nil: a status
	// with the start only.
	Status func() Status
	// MaxConnections is the number of connections served at once; more are answered 503 and closed as they come.
	// 0 means DefaultMaxConnections.
	MaxConnections int
	// MaxPerAddress is how many connections one address, or one /64 of IPv6, may have. 0 means
	// MaxConnections.
	MaxPerAddress int
	// IdleTimeout is how long a connection is kept between two requests. 0 means two minutes.
	IdleTimeout time.Duration
	// Ready reports whether a decision could be made, for /readyz. Requests that come together share
	// one call. Nil: one always could.
	Ready func(context.Context) error
	// Hosts are names of the server in requests, besides names without public DNS (see
	// HostsAccepted). A name such as "*.example.com" covers every name below the domain. Empty: no
	// further names.
	Hosts []string
	// Gatherer is what /metrics shows, with Admin. Nil: nothing.
	Gatherer prometheus.Gatherer
}

// A Server answers HTTP requests. It is an http.Handler too, for a listener of somebody else's.
type Server struct {
	opts        Options
	name        string // of the protocol, in the log and the metrics
	routes      map[string]route
	elsewhere   map[string]route // of the other kind of server, which Options.Admin selects
	profiles    profiles
	readiness   readiness
	counts      operation.Counters
	decisions   latency.Decisions
	connections connections
	http        *http.Server
	failures    guard.Sampler // of /readyz
}

// New returns a server; Serve starts it.
func New(opts Options) *Server {
	opts.WithDefaults()
	if opts.MaxConnections <= 0 {
		opts.MaxConnections = DefaultMaxConnections
	}
	if opts.Gatherer == nil {
		opts.Gatherer = prometheus.NewRegistry()
	}
	if opts.Ready == nil {
		opts.Ready = func(context.Context) error { return nil }
	}
	if opts.IdleTimeout <= 0 {
		opts.IdleTimeout = idleTimeout
	}
	if opts.Status == nil {
		started := time.Now()
		opts.Status = func() Status { return Status{Started: started} }
	}
	s := &Server{opts: opts, name: "http", profiles: newProfiles()}
	if opts.Admin {
		s.name = "admin"
	}
	s.routes, s.elsewhere = s.newRoutes()
	s.connections.guard = guard.New(guard.Options{
		Protocol: s.name, Max: opts.MaxConnections, MaxPerAddress: opts.MaxPerAddress, Log: opts.Log, Panics: opts.Panics,
	})
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       opts.IdleTimeout,
		ConnState:         s.connections.stateChanged,
		ConnContext:       s.connContext,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(opts.Log.Handler(), slog.LevelDebug),
	}
	s.http.RegisterOnShutdown(s.profiles.close)
	return s
}

// Serve answers the connections that come to l, until Shutdown, which makes it return nil, or until l fails.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&boundedListener{Listener: l, server: &s.connections, accepts: s.checkBrowser})
	if err == http.ErrServerClosed {
		return nil
	}
	return err
}

// Shutdown stops accepting, closes the connections that send nothing for 50 ms, lets the requests in flight finish until
// ctx ends, then closes what is left.
// It returns the context's error if something was left.
func (s *Server) Shutdown(ctx context.Context) error {
	defer time.AfterFunc(silentTime, s.opts.Panics.Safe(s.name+": shutdown", s.connections.closeSilent)).Stop()
	err := s.http.Shutdown(ctx)
	if err != nil {
		_ = s.http.Close()
	}
	return err
}
