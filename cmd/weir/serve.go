package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/server"
	"github.com/weirlimit/weir/store/memory"
)

// serveCommand runs the daemon.
type serveCommand struct {
	RESP            string        `name:"resp" default:"${resp}" placeholder:"ADDRESS" help:"Where to serve the Redis protocol: host:port, a port of 127.0.0.1, or off. Default: ${default}."`
	HTTP            string        `name:"http" default:"${http}" placeholder:"ADDRESS" help:"Where to serve HTTP: host:port, a port of 127.0.0.1, or off. Default: ${default}."`
	Admin           string        `name:"admin" default:"${admin}" placeholder:"ADDRESS" help:"Where to serve metrics, status, explanations, profiles and health over HTTP: host:port, a port of 127.0.0.1, or off. Default: ${default}."`
	HTTPHost        []string      `name:"http-host" sep:"none" placeholder:"NAME,..." help:"Names that HTTP requests may address the server by, such as weir.example.com or *.example.com. Addresses and local names need no flag; every other Host is refused, because a web page can take any name."`
	ProxyProtocol   []string      `name:"proxy-protocol-from" sep:"none" placeholder:"CIDR,..." help:"Where proxies connect from: their connections must begin with a header of the PROXY protocol, version 1 or 2, and nobody else's may."`
	Store           string        `default:"memory" env:"WEIR_STORE" placeholder:"URL" help:"Where to keep the state: ${store}. Default: ${default}. A password is better in the environment than in the list of processes."`
	Config          *string       `env:"WEIR_CONFIG" placeholder:"FILE" help:"Policies that POST /v1/check and WEIR.CHECK decide by. The file is followed, and read again at SIGHUP."`
	Clients         *string       `env:"-" placeholder:"URL" help:"The database of clients, in place of that in the policies: ${clients} ($WEIR_CLIENTS, which counts with --config)."`
	ClientsSnapshot *string       `placeholder:"FILE" help:"Where to keep the clients, to start from while their database is away."`
	TokenKey        []string      `sep:"none" placeholder:"FILE,..." help:"The key that encrypts the tokens of checks: a file of 32 random bytes or more, which not everybody can read. Daemons over one store have it in common. Tokens of the keys after the first are accepted too. Default: a random key for each process."`
	TrustClientTime bool          `help:"Let requests say their own time. Whoever sets the time can pass any limit."`
	MaxPeriod       time.Duration `default:"${max_period}" placeholder:"DURATION" help:"The longest period of a limit that a request names, and the longest time in which its burst may come back. Limits of policies have no such bound. Default: ${default}."`
	AllowLimits     *string       `placeholder:"any|off|LIMIT,..." help:"The limits that requests may name: any, only those of policies (off), or these. Default: any."`
	Memory          *string       `placeholder:"SIZE" help:"The most memory that keys may use, such as 512MiB or 2GB; beyond it, new keys and growing ones are denied. One name may use at most four fifths. Default: ${memory}."`
	MaxKeys         *int          `placeholder:"N" help:"The most keys to hold in memory, besides the bound on memory. Default: no such bound."`
	Overflow        *string       `placeholder:"deny|share" help:"The decision on new keys for which there is no room in memory: a denial (deny), or one budget for all of a limit (share). Default: deny."`
	MaxConnections  *int          `placeholder:"N" help:"How many connections each protocol serves at once. Default: ${max_connections}, or fewer where ulimit -n is too low."`
	MaxPerAddress   *int          `name:"max-connections-per-address" placeholder:"N" help:"How many of them may be of one IPv4 address, or of one /64 of IPv6. Default: a quarter of those that the protocol serves."`
	IdleTimeout     time.Duration `default:"0" help:"How long a client may send nothing before it is cut. Default: for ever over the Redis protocol, as Redis has it, and 2m over HTTP."`
	Log             logFlags      `embed:""`
	Grace           time.Duration `default:"${grace}" help:"How long to wait for requests in flight after SIGINT or SIGTERM. Default: ${default}."`
}

// Validate implements kong's hook.
func (c *serveCommand) Validate() error {
	if err := c.checkZeros(); err != nil {
		return err
	}
	if c.Memory != nil {
		if n, err := server.ParseSize(*c.Memory); err != nil || n == 0 {
			return &server.ConfigError{
				Field: "memory", Value: strconv.Quote(*c.Memory), Problem: "not a size", Accept: server.SizeAccepted + ", from 1MiB to 4TiB",
			}
		}
	}
	if c.Overflow != nil {
		if err := c.checkOverflow(*c.Overflow); err != nil {
			return err
		}
	}
	return c.config(nil).Validate()
}

// checkZeros refuses empty texts and zeros. A server takes such a field for its default, but a
// person who types one means something else.
func (c *serveCommand) checkZeros() error {
	for _, f := range []struct {
		name   string
		value  *string
		accept string
	}{
		{"resp", &c.RESP, server.AddressAccepted},
		{"http", &c.HTTP, server.AddressAccepted},
		{"admin", &c.Admin, server.AddressAccepted},
		{"store", &c.Store, server.StoreAccepted()},
		{"config", c.Config, "a file of policies"},
		{"clients", c.Clients, clients.Accepted},
		{"clients-snapshot", c.ClientsSnapshot, "a file"},
		{"allow-limits", c.AllowLimits, "any, off, or limits with commas between them"},
	} {
		if f.value != nil && *f.value == "" {
			return &server.ConfigError{Field: f.name, Value: `""`, Problem: "empty", Accept: f.accept}
		}
	}
	grace, maxPeriod := int(c.Grace), int(c.MaxPeriod)
	for _, f := range []struct {
		name   string
		value  *int
		accept string
	}{
		{"grace", &grace, "1ms to " + server.MaxGrace.String()},
		{"max-period", &maxPeriod, "1s to " + server.MostMaxPeriod.String()},
		{"max-keys", c.MaxKeys, fmt.Sprintf("1 to %d", server.MostKeys)},
		{"max-connections", c.MaxConnections, fmt.Sprintf("1 to %d", server.MostConnections)},
		{"max-connections-per-address", c.MaxPerAddress, "1 to max-connections"},
	} {
		if f.value != nil && *f.value == 0 {
			return &server.ConfigError{Field: f.name, Value: "0", Problem: "out of range", Accept: f.accept}
		}
	}
	return nil
}

// checkOverflow refuses what a server can't tell from its default.
func (c *serveCommand) checkOverflow(text string) error {
	switch {
	case text != "deny" && text != "share":
		return &server.ConfigError{Field: "overflow", Value: strconv.Quote(text), Problem: "unknown", Accept: "deny or share"}
	case c.Store != server.InMemory:
		return &server.ConfigError{Field: "overflow", Value: text, Problem: "for a store in memory only", Accept: "nothing, with --store"}
	}
	return nil
}

func (c *serveCommand) config(log *slog.Logger) server.Config {
	cfg := server.Config{
		RESP: c.RESP, HTTP: c.HTTP, Admin: c.Admin, TrustClientTime: c.TrustClientTime, Store: c.Store,
		MaxPeriod: c.MaxPeriod, Grace: c.Grace, IdleTimeout: c.IdleTimeout, ProxyProtocolFrom: lists(c.ProxyProtocol), HTTPHosts: lists(c.HTTPHost), TokenKeys: lists(c.TokenKey), Version: version(), Log: log,
	}
	if c.Config != nil {
		cfg.Policies, cfg.Clients = *c.Config, os.Getenv("WEIR_CLIENTS")
	}
	if c.Clients != nil {
		cfg.Clients = *c.Clients
	}
	if c.ClientsSnapshot != nil {
		cfg.ClientsSnapshot = *c.ClientsSnapshot
	}
	if c.AllowLimits != nil {
		cfg.AllowLimits = *c.AllowLimits
	}
	if c.Memory != nil {
		cfg.Memory, _ = server.ParseSize(*c.Memory) // Validate has refused an error
	}
	if c.MaxKeys != nil {
		cfg.MaxKeys = *c.MaxKeys
	}
	if c.MaxConnections != nil {
		cfg.MaxConnections = *c.MaxConnections
	}
	if c.MaxPerAddress != nil {
		cfg.MaxConnectionsPerAddress = *c.MaxPerAddress
	}
	if c.Overflow != nil && *c.Overflow == "share" {
		cfg.Overflow = memory.Share
	}
	return cfg
}

// lists returns the elements of a repeated flag with comma-separated lists.
func lists(values []string) (all []string) {
	for _, list := range values {
		for text := range strings.SplitSeq(list, ",") {
			all = append(all, strings.TrimSpace(text))
		}
	}
	return all
}

// Run serves until ctx ends or a signal asks it to stop. A second signal ends the program at once.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	log := c.Log.logger(p.stderr)
	err := c.serve(ctx, p, log)
	if err != nil && c.Log.json() {
		log.Error("weir ends", "error", p.message(err))
		return errShown
	}
	return err
}

func (c *serveCommand) serve(ctx context.Context, p *program, log *slog.Logger) (err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	hangups := make(chan os.Signal, 1)
	// from the beginning: otherwise a SIGHUP ends the program
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	s, err := server.New(c.config(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx); err != nil {
		return err
	}
	defer c.reloadAt(hangups, s, log)()
	c.greet(p.stdout, s, log)
	if p.serving != nil {
		p.serving(s)
	}
	return s.Run(ctx)
}

// reloadAt reads the policies again at each signal, until stop is called. The set of policies logs
// the result.
func (c *serveCommand) reloadAt(hangups chan os.Signal, s *server.Server, log *slog.Logger) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-hangups:
			}
			if c.Config == nil {
				log.Warn("SIGHUP: nothing to read again, because there are no policies (--config)")
				continue
			}
			_ = s.Reload()
		}
	}()
	return func() {
		close(end)
		<-done
	}
}

// greet writes a greeting, or, for a log in JSON, a record.
func (c *serveCommand) greet(w io.Writer, s *server.Server, log *slog.Logger) {
	if !c.Log.json() {
		greet(w, s, lists(c.ProxyProtocol))
		return
	}
	attributes := []any{"version", version(), "store", s.Store()}
	for name, a := range map[string]net.Addr{"resp": s.RESPAddr(), "http": s.HTTPAddr(), "admin": s.AdminAddr()} {
		if a != nil {
			attributes = append(attributes, name, a.String())
		}
	}
	if c.Config != nil {
		attributes = append(attributes, "policies", *c.Config)
	}
	log.Info("weir serves", attributes...)
}

// greet says where the server listens, and what to paste to see it work.
func greet(w io.Writer, s *server.Server, proxies []string) {
	if a := s.RESPAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "Redis protocol on %s. Try:\n  redis-cli%s WEIR.TAKE user:42 100/1m\n", a, cliOptions(a))
	}
	if a := s.HTTPAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "HTTP on %s. Try:\n  curl -d '{\"key\":\"user:42\",\"limit\":\"100/1m\"}' 'http://%s/v1/take'\n", a, near(a))
	}
	if status := s.Status(); status.Config != nil {
		_, _ = fmt.Fprintf(w, "%d policies from %s", status.Config.Policies, status.Config.Source)
		if status.Clients != nil {
			_, _ = fmt.Fprintf(w, ", %d clients from %s", status.Clients.Clients, status.Clients.Database)
		}
		_, _ = fmt.Fprintln(w, ".")
		if a := s.HTTPAddr(); a != nil {
			_, _ = fmt.Fprintf(w, "Try:\n  curl -d '{\"method\":\"POST\",\"path\":\"/login\",\"client_ip\":\"192.0.2.7\"}' 'http://%s/v1/check'\n", near(a))
		}
	}
	if a := s.AdminAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "Metrics, status and health on %s. Try:\n  curl 'http://%s/v1/status'\n", a, near(a))
	}
	if len(proxies) > 0 {
		_, _ = fmt.Fprintf(w, "Connections from %s must begin with a header of the PROXY protocol.\n", strings.Join(proxies, ", "))
	}
	_, _ = fmt.Fprintf(w, "State in %s. Ctrl-C stops it.\n", s.Store())
}

func cliOptions(a net.Addr) string {
	host, port, err := net.SplitHostPort(near(a))
	if err != nil || host == "127.0.0.1" {
		return " -p " + port
	}
	return " -h " + host + " -p " + port
}

// near is where a client on this machine finds a server that listens at a.
func near(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}
