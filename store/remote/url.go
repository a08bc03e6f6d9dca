package remote

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
	scheme      = "weir"
	defaultPort = "6380"
)

// parse reads a URL, and returns the address in it. What it says of errors never has a password in it.
func parse(text string, o Options) (address string, _ Options, err error) {
	found, rest, ok := strings.Cut(text, "://")
	if !ok || found != scheme {
		if !ok {
			found = ""
		}
		return "", o, fmt.Errorf("remote: URL has scheme %.20q; accepted: weir://host:port", found)
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.Contains(rest, "@") {
		return "", o, errors.New("remote: URL names a user; accepted: none, as weir servers have no passwords")
	}
	if address, err = hostPort(strings.TrimSuffix(rest, "/")); err != nil {
		return "", o, err
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", o, errors.New("remote: URL has parameters that can't be read; accepted: name=value&name=value")
	}
	for name, list := range values {
		if err := o.set(name, list); err != nil {
			return "", o, err
		}
	}
	return address, o, nil
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

// set sets an option that the program left open.
func (o *Options) set(name string, values []string) error {
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
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return fmt.Errorf("remote: timeout is %.50q; accepted: a duration above 0, such as 500ms", value)
		}
		if o.Timeout == 0 {
			o.Timeout = d
		}
		return nil
	}
	return fmt.Errorf("remote: URL has the parameter %.50q; accepted: timeout, prefix", name)
}
