package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/internal/urltls"
	"github.com/weirlimit/weir/store"
)

const (
	plainScheme, tlsScheme = "weir", "weirs"

	defaultPort = "6380"
)

// An address is the part of a URL that leads to a server.
type address struct {
	host         string // host:port
	user, secret string // empty: none
	tls          *tls.Config
}

// option completes the option of a client.
func (a *address) option(o rueidis.ClientOption) rueidis.ClientOption {
	o.InitAddress, o.Username, o.Password, o.TLSConfig = []string{a.host}, a.user, a.secret, a.tls
	return o
}

// parse reads a URL, and returns the address in it. Errors never contain a secret.
func parse(text string, o Options) (*address, Options, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != plainScheme && scheme != tlsScheme {
		if !ok || strings.ContainsAny(scheme, ":@/?#") { // there may be a secret in it
			scheme = ""
		}
		return nil, o, fmt.Errorf("remote: URL has scheme %.20q; accepted: weir://host:port, or weirs://host:port for TLS", scheme)
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 && strings.Contains(rest[i:], "@") {
		return nil, o, errors.New("remote: URL has an @ after the server; accepted: %XX for the characters :/?#@% of a secret or a parameter")
	}
	rest, query, _ := strings.Cut(rest, "?")
	a := new(address)
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		if err := a.setUser(rest[:i]); err != nil {
			return nil, o, err
		}
		rest = rest[i+1:]
	}
	var err error
	if a.host, err = hostPort(strings.TrimSuffix(rest, "/")); err != nil {
		return nil, o, err
	}
	a.tls, err = o.setAll(query, scheme == tlsScheme)
	return a, o, err
}

// setUser reads user:secret.
func (a *address) setUser(text string) error {
	user, secret, _ := strings.Cut(text, ":")
	var err, err2 error
	a.user, err = url.PathUnescape(user)
	a.secret, err2 = url.PathUnescape(secret)
	if err != nil || err2 != nil || a.user == "" || a.secret == "" {
		return errors.New("remote: URL has a user (not shown); accepted: user:secret@, with %XX for the characters :/?#@%")
	}
	return nil
}

func hostPort(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil { // perhaps there is no port
		host, port, err = net.SplitHostPort(text + ":" + defaultPort)
	}
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 || host == "" || strings.ContainsAny(host, "/, ") {
		return "", fmt.Errorf("remote: URL has the server %.100q; accepted: host, host:port or [IPv6]:port", text)
	}
	return net.JoinHostPort(host, port), nil
}

// setAll sets the parameters of a URL, and returns the configuration of TLS, or nil without TLS.
func (o *Options) setAll(query string, overTLS bool) (*tls.Config, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, errors.New("remote: URL has parameters that can't be read; accepted: name=value&name=value")
	}
	var secure urltls.Parameters
	for name, list := range values {
		if err := o.set(name, list, overTLS, &secure); err != nil {
			return nil, err
		}
	}
	if !overTLS {
		return nil, nil //nolint:nilnil // no TLS
	}
	config, err := secure.Config()
	if err != nil {
		return nil, fmt.Errorf("remote: URL has %w", err)
	}
	return config, nil
}

// set sets an option that the program left open, or a parameter of TLS.
func (o *Options) set(name string, values []string, overTLS bool, secure *urltls.Parameters) error {
	value := values[0]
	switch {
	case len(values) > 1:
		return fmt.Errorf("remote: URL has %.50q %d times; accepted: once", name, len(values))
	case name == "prefix":
		if o.Prefix == "" {
			o.Prefix = value
		}
		return store.CheckPrefix(value)
	case name == "timeout":
		return o.setTimeout(value)
	case name == "max_calls":
		return o.setMaxCalls(value)
	case name == "lazy":
		lazy, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("remote: lazy is %.50q; accepted: true or false", value)
		}
		o.Lazy = o.Lazy || lazy
		return nil
	case overTLS && urltls.Has(name):
		if err := secure.Set(name, value); err != nil {
			return fmt.Errorf("remote: URL has %w", err)
		}
		return nil
	}
	return fmt.Errorf("remote: URL has the parameter %.50q; accepted: timeout, max_calls, lazy, prefix; with weirs:// %s", name, urltls.Names)
}

func (o *Options) setTimeout(value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return fmt.Errorf("remote: timeout is %.50q; accepted: a duration above 0, such as 500ms", value)
	}
	if o.Timeout == 0 {
		o.Timeout = d
	}
	return nil
}

func (o *Options) setMaxCalls(value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostMaxCalls {
		return fmt.Errorf("remote: max_calls is %.50q; accepted: 1 to %d", value, mostMaxCalls)
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = n
	}
	return nil
}
