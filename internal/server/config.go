package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const (
	// Off as an address disables a protocol.
	Off = "off"
	// DefaultRESP is where the Redis protocol is served unless the Config says otherwise.
	DefaultRESP = "127.0.0.1:6380"
	// DefaultHTTP is where HTTP is served unless the Config says otherwise.
	DefaultHTTP = "127.0.0.1:8080"
	// DefaultAdmin is where the admin listener is unless the Config says otherwise.
	DefaultAdmin = "127.0.0.1:8082"
	// InMemory as a store keeps the state in this process.
	InMemory = "memory"
	// DefaultGrace is how long Run waits for what is in flight unless the Config says otherwise.
	DefaultGrace = 10 * time.Second
	// MaxGrace is the longest grace time accepted.
	MaxGrace = 10 * time.Minute
	// MostKeys is the largest MaxKeys accepted.
	MostKeys = 1 << 30
	// DefaultMaxPeriod is the default of Config.MaxPeriod: a month of 31 days.
	DefaultMaxPeriod = 31 * 24 * time.Hour
	// MostMaxPeriod is the largest MaxPeriod accepted.
	MostMaxPeriod = 100 * 365 * 24 * time.Hour
	// AnyLimit as AllowLimits lets requests name all limits.
	AnyLimit = "any"
	// LeastMemory is the smallest Memory accepted.
	LeastMemory = memory.MinMaxBytes
	// MostMemory is the largest Memory accepted.
	MostMemory = 1 << 42
)

// Config says what a Server does. The zero value serves both protocols, and the admin listener, on
// this machine only.
type Config struct {
	// RESP and HTTP are the addresses at which the protocols are served: "host:port", a bare "port" of
	// 127.0.0.1, ":port" of all interfaces, "unix:/path" of a socket, with "?mode=0660" for others
	// than this user, or Off. Port 0 means a free one. Empty: DefaultRESP, DefaultHTTP.
	RESP, HTTP string
	// Admin is the address of the admin listener: an address as those of the protocols, or Off. It
	// serves metrics, status, explanations and profiles over HTTP, which are nowhere else. Empty:
	// DefaultAdmin.
	Admin string
	// TLSCert and TLSKey are the paths of the certificate and its key, in PEM. With them every
	// address is served over TLS, except Unix sockets, and an Admin at loopback. The files are
	// followed while the server runs. Empty: no TLS.
	TLSCert, TLSKey string
	// TLSClientCA is the path of the certificates of authorities, in PEM. Wherever there is TLS,
	// clients then need a certificate of one of them. Empty: they need none.
	TLSClientCA string
	// Insecure lets the server listen beyond this machine without TLS or authentication.
	Insecure bool
	// HTTPHosts are names of the server in HTTP requests, also to the admin listener, such as
	// weir.example.com or *.example.com, besides httpapi.HostsAccepted and this machine's name.
	// Empty: no further names.
	HTTPHosts []string
	// ProxyProtocolFrom are the addresses and CIDRs of proxies, and "unix" for proxies at Unix
	// sockets. Their connections, to either protocol but not to the admin listener, begin with a
	// header of the PROXY protocol that has the client's address. Connections from elsewhere have
	// none. Empty: no connection has.
	ProxyProtocolFrom []string
	// TrustClientTime lets requests say their own time. It is also told to the store.
	TrustClientTime bool
	// Store is where the state is kept: the URL of an engine, such as redis://127.0.0.1:6379 (see engines.Accepted), or
	// InMemory. Empty: InMemory. Open opens it, and Close closes it.
	Store string
	// WaitForStore is how long Open waits for an engine that does not serve; then Open returns an
	// error. 0: Open does not wait, and requests are decided as without a store until the engine
	// serves. A wrong URL and a refused password are errors of Open at once.
	WaitForStore time.Duration
	// OnStoreError is the decision on takes and peeks while the store fails, unless a request has its
	// own. Policies have on_store_error. 0: store.Deny, which returns an error.
	OnStoreError store.OnError
	// Opened, if not nil, is the store to use, in place of Store. Nobody here closes it.
	Opened store.Store
	// Policies is the path of a file of policies, which is loaded by Open and followed while the server runs. Empty: there are none.
	Policies string
	// Clients is the URL of the database of clients, and ClientsSnapshot the path of the file from which to start when that is away. Empty: as
	// the file of policies says.
	Clients, ClientsSnapshot string
	// Users is the path of the file of users, which is followed while the server runs. Empty: every
	// client may do everything. See [access.Parse] for its form.
	Users string
	// Audit is the path of the audit log, to which the server appends. Empty: there is none.
	Audit string
	// TokenKeys are the paths of files of at least 32 random bytes, the keys of the tokens of
	// checks: the first encrypts, and all decrypt. Up to 4, read by Open; world-readable files
	// are refused. Servers over one store settle each other's tokens if they share the keys. Empty:
	// a random key, which is lost when the server ends.
	TokenKeys []string
	// MaxPeriod bounds the periods of limits in requests, and the time in which their burst comes
	// back. 0: DefaultMaxPeriod. The limits of policies have no such bound.
	MaxPeriod time.Duration
	// AllowLimits are the limits accepted from requests: AnyLimit, Off for the limits of policies
	// only, or limit texts with commas between them. Empty: AnyLimit.
	AllowLimits string
	// Memory bounds the memory of keys, in bytes. 0: memory.DefaultMaxBytes. With an engine it must
	// be 0.
	Memory int64
	// MaxKeys, if not 0, bounds the number of keys in memory too. With an engine it must be 0.
	MaxKeys int
	// Overflow is the decision on new keys for which there is no room in memory.
	Overflow memory.Overflow
	// MaxConnections is how many connections each protocol serves at once; the admin listener has a
	// bound of its own. 0:
	// DefaultMaxConnections. Where the process may not have that many files open there are fewer,
	// and a warning in the log.
	MaxConnections int
	// MaxConnectionsPerAddress is how many of them may be of one IPv4 address, or of one /64 of
	// IPv6. Proxies of ProxyProtocolFrom report the address. 0: a quarter of the protocol's
	// connections.
	MaxConnectionsPerAddress int
	// IdleTimeout is how long a client of either protocol may send nothing. 0: for ever over the
	// Redis protocol, and two minutes between requests of HTTP.
	IdleTimeout time.Duration
	// Grace is how long Run waits for what is in flight after its context has ended. 0: DefaultGrace.
	Grace time.Duration
	// Version is told to clients and in the metrics. Empty: "dev".
	Version string
	// Log is told what an operator should know. Nil: nobody is.
	Log *slog.Logger
}

// A ConfigError says which field of a Config can't be had, what it was, why not, and what would be accepted. The field is
// named as the flag of weir serve is.
type ConfigError struct {
	Field, Value, Problem, Accept string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s %s: %s; accepted: %s", e.Field, e.Value, e.Problem, e.Accept)
}

// Validate reports the first field that makes no sense, as a *ConfigError.
func (c Config) Validate() error {
	_, err := c.checked()
	return err
}

// checked fills in the defaults and reports the first field that makes no sense.
func (c Config) checked() (Config, error) {
	for _, a := range []struct {
		field    string
		address  *string
		standard string
	}{{"resp", &c.RESP, DefaultRESP}, {"http", &c.HTTP, DefaultHTTP}, {"admin", &c.Admin, DefaultAdmin}} {
		var err error
		if *a.address, err = address(a.field, cmp.Or(*a.address, a.standard)); err != nil {
			return c, err
		}
	}
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.Store = cmp.Or(c.Store, InMemory)
	c.MaxPeriod = cmp.Or(c.MaxPeriod, DefaultMaxPeriod)
	c.Version = cmp.Or(c.Version, "dev")
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	_, _, err := networks("proxy-protocol-from", c.ProxyProtocolFrom)
	for _, check := range []func() error{
		func() error { return hosts(c.HTTPHosts) }, c.checkStore, func() error { _, err := c.rules(); return err },
		c.checkConnections, c.checkTokenKeys, c.checkTLS,
	} {
		if err != nil {
			return c, err
		}
		err = check()
	}
	if c.Memory = cmp.Or(c.Memory, memory.DefaultMaxBytes); err == nil { // with an engine it must not be set
		err = c.check()
	}
	return c, err
}

func (c Config) check() error {
	switch {
	case c.RESP == Off && c.HTTP == Off:
		return &ConfigError{"http", Off, "resp is off too, so that nothing would be served", "off for one of them"}
	case place(c.RESP) == place(c.HTTP) && !anyPort(c.HTTP):
		return &ConfigError{"http", c.HTTP, "resp is served there", "another address, or off"}
	case place(c.Admin) == place(c.RESP) && !anyPort(c.Admin):
		return &ConfigError{"admin", c.Admin, "resp is served there", "another address, or off"}
	case place(c.Admin) == place(c.HTTP) && !anyPort(c.Admin):
		return &ConfigError{"admin", c.Admin, "http is served there", "another address, or off"}
	case c.Policies == "" && c.Clients != "":
		return &ConfigError{"clients", "given", "there are no policies that would use them", "nothing, or config too"}
	case c.Policies == "" && c.ClientsSnapshot != "":
		return &ConfigError{"clients-snapshot", strconv.Quote(c.ClientsSnapshot), "there are no policies that would use it", "nothing, or config too"}
	}
	for _, l := range [][2]string{{"resp", c.RESP}, {"http", c.HTTP}, {"admin", c.Admin}} {
		if err := c.checkExposed(l[0], l[1]); err != nil {
			return err
		}
	}
	return c.checkRanges()
}

// checkRanges refuses values that are too small, too large or unknown.
func (c Config) checkRanges() error {
	switch {
	case c.MaxPeriod < time.Second || c.MaxPeriod > MostMaxPeriod:
		return &ConfigError{"max-period", c.MaxPeriod.String(), "out of range", "1s to " + MostMaxPeriod.String()}
	case c.Memory < LeastMemory || c.Memory > MostMemory:
		return &ConfigError{"memory", sizeText(c.Memory), "out of range", sizeText(LeastMemory) + " to " + sizeText(MostMemory)}
	case c.MaxKeys < 0 || c.MaxKeys > MostKeys:
		return &ConfigError{"max-keys", strconv.Itoa(c.MaxKeys), "out of range", fmt.Sprintf("1 to %d", MostKeys)}
	case c.WaitForStore < 0 || c.WaitForStore > MostWaitForStore:
		return &ConfigError{"wait-for-store", c.WaitForStore.String(), "out of range", "0, for no wait, to " + MostWaitForStore.String()}
	case c.OnStoreError < store.Allow || c.OnStoreError > store.Local:
		return &ConfigError{"on-store-error", strconv.Itoa(int(c.OnStoreError)), "unknown", store.OnErrorAccepted}
	case c.Overflow != memory.Deny && c.Overflow != memory.Share:
		return &ConfigError{"overflow", strconv.Itoa(int(c.Overflow)), "unknown", "deny or share"}
	case c.Grace < time.Millisecond || c.Grace > MaxGrace:
		return &ConfigError{"grace", c.Grace.String(), "out of range", "1ms to " + MaxGrace.String()}
	}
	return nil
}

// checkStore refuses what does not go with the store.
func (c Config) checkStore() error {
	keeper, strict := c.Opened.(store.Timekeeper)
	strict = strict && !keeper.TrustsClientTime()
	const onlyInMemory = "for a store in memory only: an engine has its own bounds"
	if _, ok := engines.Scheme(c.Store); !ok && c.Store != InMemory {
		return &ConfigError{"store", engines.Shown(c.Store), "its scheme is unknown" + engines.Suggestion(c.Store), StoreAccepted()}
	}
	switch {
	case c.Opened != nil && c.Store != InMemory:
		return &ConfigError{"store", engines.Shown(c.Store), "there is one that is open", "one of them"}
	case c.Opened != nil && c.TrustClientTime && strict:
		return &ConfigError{"trust-client-time", "true", "the store decides by its own clock", "false, or a store that is told to trust it too"}
	case c.inMemory():
		return nil
	case c.Memory != 0:
		return &ConfigError{"memory", sizeText(c.Memory), onlyInMemory, "nothing"}
	case c.MaxKeys != 0:
		return &ConfigError{"max-keys", strconv.Itoa(c.MaxKeys), onlyInMemory, "nothing"}
	case c.Overflow != memory.Deny:
		return &ConfigError{"overflow", "share", onlyInMemory, "nothing"}
	}
	return nil
}

// rules returns the rules for limits in requests.
func (c Config) rules() (limiters.Rules, error) {
	r := limiters.Rules{MaxPeriod: c.MaxPeriod, Listed: true}
	switch c.AllowLimits {
	case "", AnyLimit:
		r.Listed = false
		return r, nil
	case Off:
		return r, nil
	}
	for text := range strings.SplitSeq(c.AllowLimits, ",") {
		limit, err := weir.ParseLimit(strings.TrimSpace(text))
		if err != nil {
			return r, &ConfigError{"allow-limits", strconv.Quote(text), err.Error(), "any, off, or limits with commas between them"}
		}
		r.Limits = append(r.Limits, limit)
	}
	return r, nil
}

func (c Config) inMemory() bool { return c.Opened == nil && c.Store == InMemory }

// StoreAccepted says what a store may be.
func StoreAccepted() string { return InMemory + ", or a URL: " + engines.Accepted() }
