package memcached

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/store"
)

const (
	scheme      = "memcached://"
	defaultPort = "11211"
)

// errUser shows nothing of the URL, which may have a password.
var errUser = errors.New("memcached: URL names a user; accepted: none, as users (SASL) are not supported")

// parse reads a URL. Parameters in it go over the options.
func parse(text string, o Options) ([]addr, Options, error) {
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		found, _, _ := strings.Cut(text, ":")
		return nil, o, fmt.Errorf("memcached: URL begins with %.20q; accepted: %shost:port", found, scheme)
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "@") {
		return nil, o, errUser
	}
	if strings.HasPrefix(rest, "/") {
		o, err := parseQuery(query, o)
		return []addr{{"unix", rest}}, o, err
	}
	var addrs []addr
	for host := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		a, err := parseHost(host)
		if err != nil {
			return nil, o, err
		}
		addrs = append(addrs, a)
	}
	o, err := parseQuery(query, o)
	return addrs, o, err
}

func parseHost(text string) (addr, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil { // perhaps there is no port
		host, port, err = net.SplitHostPort(text + ":" + defaultPort)
	}
	if n, e := strconv.ParseUint(port, 10, 16); err != nil || e != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ ") {
		return addr{}, fmt.Errorf("memcached: URL has the server %.100q; accepted: host, host:port or [IPv6]:port, and commas between several", text)
	}
	return addr{"tcp", net.JoinHostPort(host, port)}, nil
}

func parseQuery(text string, o Options) (Options, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return o, fmt.Errorf("memcached: parameters of the URL: %w", err)
	}
	for name, values := range query {
		if len(values) != 1 {
			return o, fmt.Errorf("memcached: URL has %s %d times; accepted: once", name, len(values))
		}
		if err := setOption(&o, name, values[0]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func setOption(o *Options, name, value string) (err error) {
	var accepted string
	switch name {
	case "prefix":
		o.Prefix = value
		return store.CheckPrefix(value)
	case "timeout":
		accepted = "a duration above 0, such as 500ms"
		if o.Timeout, err = time.ParseDuration(value); o.Timeout <= 0 {
			err = strconv.ErrRange
		}
	case "clock_skew":
		accepted = "a duration of 0 or more, such as 10s"
		if o.ClockSkew, err = time.ParseDuration(value); o.ClockSkew < 0 {
			err = strconv.ErrRange
		} else if o.ClockSkew == 0 {
			o.ClockSkew = -1 // none, not the default
		}
	case "connections":
		accepted = "1 to 65535"
		if o.Connections, err = strconv.Atoi(value); o.Connections < 1 || o.Connections > 65535 {
			err = strconv.ErrRange
		}
	case "max_calls":
		accepted = "a number above 0"
		o.MaxCalls, err = aboveZero(value)
	case "lazy":
		accepted = "true or false"
		o.Lazy, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("memcached: URL has the parameter %.50q; accepted: timeout, prefix, clock_skew, connections, max_calls, lazy", name)
	}
	if err != nil {
		return fmt.Errorf("memcached: %s is %.50q; accepted: %s", name, value, accepted)
	}
	return nil
}

func aboveZero(value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err == nil && n < 1 {
		err = strconv.ErrRange
	}
	return n, err
}
