package server

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"
)

// AddressAccepted says what an address may be.
const AddressAccepted = "host:port, a port of 127.0.0.1 such as 6380, or off"

// address brings an address to the form host:port, or Off. The error is a *ConfigError.
func address(field, text string) (string, error) {
	if text == Off {
		return Off, nil
	}
	host, port := "127.0.0.1", text
	if strings.Contains(text, ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", &ConfigError{field, strconv.Quote(text), "no host:port", AddressAccepted}
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", &ConfigError{field, strconv.Quote(text), "the port is no number from 0 to 65535", AddressAccepted}
	}
	return net.JoinHostPort(host, port), nil
}

// anyPort reports whether a free port is to be chosen, so that equal addresses do not meet.
func anyPort(address string) bool { return address == Off || strings.HasSuffix(address, ":0") }

// why says in words what keeps a listener from its address.
func why(err error) string {
	var inner *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program listens there"
	case errors.Is(err, syscall.EACCES):
		return "this user may not listen there"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address"
	case errors.As(err, &inner):
		return inner.Err.Error()
	}
	return err.Error()
}
