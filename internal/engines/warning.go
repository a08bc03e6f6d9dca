package engines

import (
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Warning returns a warning about the URL of a store or of a database of clients, with its remedy,
// if somebody on the network could read or change the traffic; otherwise "". There is no warning
// for this machine, nor for memcached, which has no remedy.
func Warning(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	kind, _, _ := strings.Cut(scheme, "+")
	switch {
	case (kind == "redis" || kind == "weir") && beyondLoopback(rest) && strings.Contains(rest, "@"):
		return "the password and the keys go over the network as they are: " + kind + "s:// encrypts them"
	case (kind == "redis" || kind == "weir") && beyondLoopback(rest):
		return "the keys, which may be names of clients, go over the network as they are: " + kind + "s:// encrypts them"
	case (kind == "rediss" || kind == "weirs") && beyondLoopback(rest) && unverified(rest):
		return "the certificate of the server is not verified, so another server can take its place: leave out insecure_skip_verify, and name its authority with ca="
	case (kind == "postgres" || kind == "postgresql") && postgresUnverified(text):
		return "the server is not verified, so another one can take its place and read the password: sslmode=verify-full verifies it"
	}
	return ""
}

// beyondLoopback reports whether a host of a URL is not this machine.
func beyondLoopback(rest string) bool {
	hosts, _, _ := strings.Cut(place(rest), "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			return true
		}
	}
	return false
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// unverified reports whether the parameters of a URL turn off the verification of
// certificates.
func unverified(rest string) bool {
	_, query, _ := strings.Cut(rest, "?")
	parameters, err := url.ParseQuery(query)
	switch parameters.Get("insecure_skip_verify") {
	case "", "0", "f", "F", "false", "FALSE", "False":
		return err != nil
	}
	return true
}

// postgresUnverified reports whether a way to connect, by the parameters of the URL and the
// environment of libpq, has a server beyond this machine without verification of its certificate
// and name.
func postgresUnverified(text string) bool {
	c, err := pgconn.ParseConfig(text)
	if err != nil {
		return false // invalid for the store, too
	}
	ways := append([]*pgconn.FallbackConfig{{Host: c.Host, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	for _, way := range ways {
		socket := strings.HasPrefix(way.Host, "/") || strings.HasPrefix(way.Host, "@")
		if !socket && !isLoopback(way.Host) && (way.TLSConfig == nil || way.TLSConfig.InsecureSkipVerify) {
			return true
		}
	}
	return false
}
