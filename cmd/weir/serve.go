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

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/policy/clients"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// serveCommand runs the daemon.
type serveCommand struct {
	RESP            string        `name:"resp" default:"${resp}" placeholder:"ADDRESS" help:"Where to serve the Redis protocol: host:port, a port of 127.0.0.1, unix:/path of a socket (?mode=0660 lets its group connect), or off. Default: ${default}."`
	HTTP            string        `name:"http" default:"${http}" placeholder:"ADDRESS" help:"Where to serve HTTP: host:port, a port of 127.0.0.1, unix:/path, or off. Default: ${default}."`
	Admin           string        `name:"admin" default:"${admin}" placeholder:"ADDRESS" help:"Where to serve metrics, status, explanations, profiles and health over HTTP: host:port, a port of 127.0.0.1, unix:/path, or off. Over TLS only beyond loopback. Default: ${default}."`
	HTTPHost        []string      `name:"http-host" sep:"none" placeholder:"NAME,..." help:"Names that HTTP requests may address the server by, such as weir.example.com or *.example.com. Addresses and local names need no flag; every other Host is refused, because a web page can take any name."`
	ProxyProtocol   []string      `name:"proxy-protocol-from" sep:"none" placeholder:"CIDR,..." help:"Where proxies connect from, as CIDRs, or unix for Unix sockets: their connections must begin with a header of the PROXY protocol, version 1 or 2, and nobody else's may."`
	TLSCert         *string       `name:"tls-cert" placeholder:"FILE" help:"The certificate of the server, in PEM, with the intermediate certificates. With it all protocols are served over TLS, except at Unix sockets. The files of certificates are followed, and read again at SIGHUP."`
	TLSKey          *string       `name:"tls-key" placeholder:"FILE" help:"The key of --tls-cert, in PEM, which not everybody can read."`
	TLSClientCA     *string       `name:"tls-client-ca" placeholder:"FILE" help:"The authorities of clients, in PEM: every client then needs a certificate of one of them."`
	Insecure        bool          `help:"Listen beyond this machine also without TLS or authentication, which is refused otherwise."`
	Store           string        `default:"memory" env:"WEIR_STORE" placeholder:"URL" help:"Where to keep the state: ${store}. Default: ${default}. A password is better in the environment than in the list of processes."`
	WaitForStore    time.Duration `default:"0" placeholder:"DURATION" help:"How long to wait at the start for an engine that does not serve, and then to end with an error. Default: not at all; requests are decided as --on-store-error and the policies set, until the engine serves."`
	OnStoreError    string        `default:"deny" placeholder:"deny|allow|local" help:"The decision on takes while the store fails: an error (deny), allow, or the limit in the memory of this process (local), or a share of it, such as 'local 25%'. A request may have its own, and policies have on_store_error. Default: ${default}."`
	Config          *string       `env:"WEIR_CONFIG" placeholder:"FILE" help:"Policies that POST /v1/check and WEIR.CHECK decide by. The file is followed, and read again at SIGHUP."`
	Clients         *string       `env:"-" placeholder:"URL" help:"The database of clients, in place of that in the policies: ${clients} ($WEIR_CLIENTS, which counts with --config)."`
	ClientsSnapshot *string       `placeholder:"FILE" help:"Where to keep the clients, to start from while their database is away."`
	TokenKey        []string      `sep:"none" placeholder:"FILE,..." help:"The key that encrypts the tokens of checks: a file of 32 random bytes or more, which not everybody can read. Daemons over one store have it in common. Tokens of the keys after the first are accepted too. Default: a random key for each process."`
	Users           *string       `env:"WEIR_USERS" placeholder:"FILE" help:"The users who may connect, with their secrets and rights: weir users add makes the file. It is followed, and read again at SIGHUP. Default: everybody may do everything."`
	Audit           *string       `placeholder:"FILE" help:"A log of refunds, resets, changes of the configuration and refused logins, as JSON lines. It is opened again at SIGHUP. Default: none."`
	TrustClientTime bool          `help:"Let requests say their own time. Whoever sets the time can pass any limit."`
	MaxPeriod       time.Duration `default:"${max_period}" placeholder:"DURATION" help:"The longest period of a limit that a request names, and the longest time in which its burst may come back. Limits of policies have no such bound. Default: ${default}."`
	AllowLimits     *string       `placeholder:"any|off|LIMIT,..." help:"The limits that requests may name: any, only those of policies (off), or these. Default: any."`
	Memory          *string       `placeholder:"SIZE" help:"The most memory that keys may use, such as 512MiB or 2GB; beyond it, new keys and growing ones are denied. One name may use at most four fifths. Go's soft memory limit is twice as much and 256MiB more, unless $GOMEMLIMIT is set. Default: ${memory}."`
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
	if _, err := store.ParseOnError(c.OnStoreError); err != nil {
		return &server.ConfigError{Field: "on-store-error", Value: strconv.Quote(c.OnStoreError), Problem: "unknown", Accept: store.OnErrorAccepted}
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
		{"tls-cert", c.TLSCert, "a file"},
		{"tls-key", c.TLSKey, "a file"},
		{"tls-client-ca", c.TLSClientCA, "a file"},
		{"config", c.Config, "a file of policies"},
		{"clients", c.Clients, clients.Accepted},
		{"clients-snapshot", c.ClientsSnapshot, "a file"},
		{"users", c.Users, server.UsersAccepted},
		{"audit", c.Audit, server.AuditAccepted},
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
		MaxPeriod: c.MaxPeriod, Insecure: c.Insecure, Grace: c.Grace, IdleTimeout: c.IdleTimeout, ProxyProtocolFrom: lists(c.ProxyProtocol), HTTPHosts: lists(c.HTTPHost), TokenKeys: lists(c.TokenKey), Version: version(), Log: log,
	}
	cfg.WaitForStore = c.WaitForStore
	cfg.OnStoreError, _ = store.ParseOnError(c.OnStoreError) // Validate has refused an error
	if c.Config != nil {
		cfg.Policies, cfg.Clients = *c.Config, os.Getenv("WEIR_CLIENTS")
	}
	if c.Clients != nil {
		cfg.Clients = *c.Clients
	}
	if c.ClientsSnapshot != nil {
		cfg.ClientsSnapshot = *c.ClientsSnapshot
	}
	for _, path := range []struct{ from, to *string }{{c.TLSCert, &cfg.TLSCert}, {c.TLSKey, &cfg.TLSKey}, {c.TLSClientCA, &cfg.TLSClientCA}} {
		if path.from != nil {
			*path.to = *path.from
		}
	}
	if c.Users != nil {
		cfg.Users = *c.Users
	}
	if c.Audit != nil {
		cfg.Audit = *c.Audit
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
	cfg := c.config(log)
	s, err := server.New(cfg)
	if err != nil {
		return err
	}
	defer limitMemory(cfg)()
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

// reloadAt reads the policies and the certificates again at each signal, until stop is called. They
// log the result.
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
			if c.Config == nil && c.TLSCert == nil && c.Users == nil && c.Audit == nil {
				log.Warn("SIGHUP: nothing to read again, because there are no policies (--config), certificates (--tls-cert), users (--users) and audit log (--audit)")
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
		c.greetLines(w, s)
		return
	}
	attributes := []any{"version", version(), "store", s.Store()}
	for _, on := range []struct {
		name string
		at   net.Addr
	}{{"resp", s.RESPAddr()}, {"http", s.HTTPAddr()}, {"admin", s.AdminAddr()}} {
		if on.at != nil {
			attributes = append(attributes, on.name, on.at.String())
		}
	}
	if c.Config != nil {
		attributes = append(attributes, "policies", *c.Config)
	}
	log.Info("weir serves", attributes...)
}

// greetLines writes where the server listens, and lines to try.
func (c *serveCommand) greetLines(w io.Writer, s *server.Server) {
	if a := s.RESPAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "Redis protocol on %s. Try:\n  redis-cli%s WEIR.TAKE user:42 100/1m\n", a, c.cliOptions(a))
	}
	if a := s.HTTPAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "HTTP on %s. Try:\n  curl -d '{\"key\":\"user:42\",\"limit\":\"100/1m\"}'%s/v1/take'\n", a, c.curlOptions(a))
	}
	if status := s.Status(); status.Config != nil {
		_, _ = fmt.Fprintf(w, "%d policies from %s", status.Config.Policies, status.Config.Source)
		if status.Clients != nil {
			_, _ = fmt.Fprintf(w, ", %d clients from %s", status.Clients.Clients, status.Clients.Database)
		}
		_, _ = fmt.Fprintln(w, ".")
		if a := s.HTTPAddr(); a != nil {
			_, _ = fmt.Fprintf(w, "Try:\n  curl -d '{\"method\":\"POST\",\"path\":\"/login\",\"client_ip\":\"192.0.2.7\"}'%s/v1/check'\n", c.curlOptions(a))
		}
	}
	if a := s.AdminAddr(); a != nil {
		_, _ = fmt.Fprintf(w, "Metrics, status and health on %s. Try:\n  curl%s/v1/status'\n", a, c.adminOptions(a))
	}
	if proxies := lists(c.ProxyProtocol); len(proxies) > 0 {
		_, _ = fmt.Fprintf(w, "Connections from %s must begin with a header of the PROXY protocol.\n", strings.Join(proxies, ", "))
	}
	_, _ = fmt.Fprintf(w, "State in %s. Ctrl-C stops it.\n", s.Store())
}

// cliOptions are the options of redis-cli for an address.
func (c *serveCommand) cliOptions(a net.Addr) string {
	login := ""
	if c.Users != nil {
		login = " --user USER --pass SECRET"
	}
	if a.Network() == "unix" {
		return " -s " + a.String() + login
	}
	options := c.tlsOptions("--tls --cacert", "--cert", "--key") + login
	host, port, err := net.SplitHostPort(near(a))
	if err != nil || host == "127.0.0.1" {
		return " -p " + port + options
	}
	return " -h " + host + " -p " + port + options
}

// curlOptions are the options of curl for an address, with the URL up to the path and without its
// last quote.
func (c *serveCommand) curlOptions(a net.Addr) string {
	switch {
	case a.Network() == "unix":
		return " --unix-socket " + a.String() + c.curlLogin() + " 'http://localhost"
	case c.TLSCert != nil:
		return c.tlsOptions("--cacert", "--cert", "--key") + c.curlLogin() + " 'https://" + near(a)
	}
	return c.curlLogin() + " 'http://" + near(a)
}

// adminOptions is curlOptions for the admin listener, which has no TLS at loopback.
func (c *serveCommand) adminOptions(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return c.curlLogin() + " 'http://" + near(a)
	}
	return c.curlOptions(a)
}

// curlLogin is the option of curl for a user. The names and the secrets are the user's.
func (c *serveCommand) curlLogin() string {
	if c.Users == nil {
		return ""
	}
	return " -u USER:SECRET"
}

// tlsOptions are a program's options for TLS. The files are the user's.
func (c *serveCommand) tlsOptions(ca, cert, key string) string {
	switch {
	case c.TLSCert == nil:
		return ""
	case c.TLSClientCA == nil:
		return " " + ca + " ca.pem"
	}
	return " " + ca + " ca.pem " + cert + " client.pem " + key + " client.key"
}

// near is where a client on this machine finds a server that listens at a.
func near(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
}
