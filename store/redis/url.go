package redis

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/urltls"
)

// An address is a URL, read.
type address struct {
	client rueidis.ClientOption
	prefix string
	// timeout is that of operations; 0 if the URL does not say.
	timeout  time.Duration
	maxCalls int // 0 if the URL does not say
	lazy     bool
	cluster  bool
}

// A scheme is the kind of server and connection, from the first part of a URL.
type scheme struct{ cluster, sentinel, tls bool }

var schemes = map[string]scheme{
	"redis":           {},
	"rediss":          {tls: true},
	"redis+cluster":   {cluster: true},
	"rediss+cluster":  {cluster: true, tls: true},
	"redis+sentinel":  {sentinel: true},
	"rediss+sentinel": {sentinel: true, tls: true},
}

const schemesAccepted = "redis://, redis+cluster://, redis+sentinel://, and rediss://, rediss+cluster://, rediss+sentinel:// for TLS"

// refuse makes an error that names a part of a URL. Its value must not be the password.
func refuse(part, value, accept string) error {
	return fmt.Errorf("redis: URL has %s %.100q; accepted: %s", part, value, accept)
}

// cutScheme returns the scheme of a URL and the text after the scheme, with an @ before the host at
// most.
func cutScheme(text string) (scheme, string, error) {
	name, rest, found := strings.Cut(text, "://")
	kind, known := schemes[name]
	if !found || !known {
		if !found || strings.ContainsAny(name, ":@/?#") { // there may be a password in it
			name = ""
		}
		return scheme{}, "", refuse("scheme", name, schemesAccepted)
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.Contains(rest[i:], "@") {
		return scheme{}, "", refuse("an @", "(not shown)", "the last @ before the first of / ? #: a password, or a parameter, has %XX for the characters :/?#@%")
	}
	return kind, rest, nil
}

// parseURL reads the URL of a server. Errors never contain a password.
func parseURL(text string) (*address, error) {
	kind, rest, err := cutScheme(text)
	if err != nil {
		return nil, err
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i], authority[i+1:]
	}
	a := &address{cluster: kind.cluster, client: rueidis.ClientOption{
		DisableCache: true, DisableRetry: true, ForceSingleClient: !kind.cluster && !kind.sentinel,
		ReadBufferEachConn: 1 << 16, WriteBufferEachConn: 1 << 16,
	}}
	if kind.tls {
		a.client.TLSConfig = new(tls.Config) // which readQuery replaces
	}
	if err := a.readUser(user); err != nil {
		return nil, err
	}
	port, many := "6379", kind.cluster || kind.sentinel
	if kind.sentinel {
		port = "26379"
	}
	if err := a.readHosts(hosts, port, many); err != nil {
		return nil, err
	}
	if kind.sentinel {
		name, db, _ := strings.Cut(path, "/")
		if name == "" {
			return nil, refuse("path", path, "/name or /name/db, where name is what the sentinels call the master")
		}
		a.client.Sentinel.MasterSet, path = name, db
	}
	if err := a.readDatabase(path, kind.cluster); err != nil {
		return nil, err
	}
	if err := a.readQuery(query, kind.sentinel); err != nil {
		return nil, err
	}
	if kind.sentinel {
		a.watch()
	}
	return a, nil
}

func (a *address) readUser(text string) error {
	name, password, _ := strings.Cut(text, ":")
	user, err := url.PathUnescape(name)
	if err != nil {
		return refuse("user", "(not shown)", "text with %XX for the characters :/?#@%")
	}
	if a.client.Password, err = url.PathUnescape(password); err != nil {
		return refuse("password", "(not shown)", "text with %XX for the characters :/?#@%")
	}
	a.client.Username = user
	return nil
}

func (a *address) readHosts(hosts, port string, many bool) error {
	accept := "host or host:port"
	if many {
		accept += ", or several with commas"
	}
	list := strings.Split(hosts, ",")
	if len(list) > 1 && !many {
		return refuse("host", hosts, accept)
	}
	for _, text := range list {
		host, p := text, port
		if strings.HasSuffix(text, "]") { // an IPv6 address alone
			host = strings.Trim(text, "[]")
		} else if h, q, err := net.SplitHostPort(text); err == nil {
			host, p = h, q
		} else if strings.Contains(text, ":") {
			return refuse("host", text, accept)
		}
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return refuse("port", p, "1 to 65535")
		}
		if host == "" {
			return refuse("host", text, accept)
		}
		a.client.InitAddress = append(a.client.InitAddress, net.JoinHostPort(host, p))
	}
	return nil
}

func (a *address) readDatabase(text string, cluster bool) error {
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if cluster && (err != nil || n != 0) {
		return refuse("database", text, "none: a cluster has only 0")
	}
	if err != nil || n < 0 {
		return refuse("database", text, "a number from 0")
	}
	a.client.SelectDB = n
	return nil
}

// parameters are what may follow the ? in a URL.
const parameters = "timeout, dial_timeout, max_calls, lazy, prefix, client_name; with TLS: " + urltls.Names + "; " +
	"with sentinels: sentinel_user, sentinel_password"

func (a *address) readQuery(text string, sentinel bool) error {
	query, err := url.ParseQuery(text)
	if err != nil {
		return refuse("query", "(not shown)", "name=value&name=value, with %XX for special characters")
	}
	var secure urltls.Parameters
	for name, values := range query {
		if len(values) > 1 {
			return refuse("parameter "+name, "twice", "once")
		}
		if err := a.readParameter(name, values[0], sentinel, &secure); err != nil {
			return err
		}
	}
	if a.client.TLSConfig == nil {
		return nil
	}
	if a.client.TLSConfig, err = secure.Config(); err != nil {
		return fmt.Errorf("redis: URL has %w", err)
	}
	return nil
}

func (a *address) readParameter(name, value string, sentinel bool, secure *urltls.Parameters) error {
	var err error
	switch name {
	case "timeout":
		a.timeout, err = readTimeout(name, value)
	case "dial_timeout":
		a.client.Dialer.Timeout, err = readTimeout(name, value)
	case "max_calls":
		a.maxCalls, err = readMaxCalls(name, value)
	case "lazy":
		a.lazy, err = readBool(name, value)
	case "prefix":
		a.prefix = value
	case "client_name":
		a.client.ClientName = value
	case "sentinel_user", "sentinel_password":
		if !sentinel {
			return refuse("parameter", name, parameters)
		}
		if name == "sentinel_user" {
			a.client.Sentinel.Username = value
		} else {
			a.client.Sentinel.Password = value
		}
	default:
		if a.client.TLSConfig == nil || !urltls.Has(name) {
			return refuse("parameter", name, parameters)
		}
		if err = secure.Set(name, value); err != nil {
			return fmt.Errorf("redis: URL has %w", err)
		}
	}
	return err
}

// mostMaxCalls bounds MaxCalls: each connection has memory for so many.
const mostMaxCalls = 1 << 16

func readMaxCalls(name, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostMaxCalls {
		return 0, refuse(name, value, fmt.Sprintf("1 to %d", mostMaxCalls))
	}
	return n, nil
}

func readBool(name, value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, refuse(name, value, "true or false")
	}
	return b, nil
}

func readTimeout(name, value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, refuse(name, value, "a duration of more than 0, such as 500ms")
	}
	return d, nil
}

// watch prepares the way to sentinels.
func (a *address) watch() {
	s := &a.client.Sentinel
	s.TLSConfig, s.Dialer, s.ClientName = a.client.TLSConfig, a.client.Dialer, a.client.ClientName
	s.TopologyRefreshInterval = 5 * time.Second // for the news that got lost
}
