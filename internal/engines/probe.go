package engines

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"
)

// probeTime bounds each connection of a probe. Tests on busy machines change it.
var probeTime = time.Second

// defaultPorts are the ports of URLs without a port.
var defaultPorts = map[string]string{
	"redis": "6379", "rediss": "6379", "postgres": "5432", "postgresql": "5432", "memcached": "11211", "weir": "6380", "weirs": "6380",
}

// speaks is the protocol of each kind of engine.
var speaks = map[string]string{"redis": "redis", "rediss": "tls", "postgres": "postgres", "postgresql": "postgres", "memcached": "memcached", "weir": "redis", "weirs": "tls"}

// mismatch returns the reason for which the server of a URL can't be the engine of the scheme, with
// the right scheme; or "" if the server answers in the protocol of the scheme, or not at all. It
// sends no user and no password.
func mismatch(ctx context.Context, url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	kind, mode, _ := strings.Cut(scheme, "+")
	address := firstAddress(kind, mode, rest)
	if address == "" || errors.Is(ctx.Err(), context.Canceled) {
		return ""
	}
	found := protocol(context.WithoutCancel(ctx), address)
	if found == "" || found == speaks[kind] {
		return ""
	}
	if mode != "" {
		mode = "+" + mode
	}
	plain := strings.TrimSuffix(kind, "s") // redis or weir, whose scheme with TLS has an s
	switch {
	case found == "redis" && speaks[kind] == "tls":
		return "the server at " + address + " does not speak TLS; accepted: " + plain + mode + "://"
	case found == "tls" && speaks[kind] == "redis":
		return "the server at " + address + " speaks TLS; accepted: " + kind + "s" + mode + "://"
	case found == "tls":
		return "the server at " + address + " speaks TLS at once, which " + kind + ":// does not; accepted: the port of the engine"
	case found == "http":
		return "the server at " + address + " speaks HTTP; accepted: the port of the engine"
	case found == "redis":
		return "the server at " + address + " speaks the protocol of Redis; accepted: redis://, or weir:// for a weir server"
	}
	return "the server at " + address + " speaks the protocol of " + found + "; accepted: " + found + "://"
}

// firstAddress returns the TCP address of the first host of a URL, or "".
func firstAddress(kind, mode, rest string) string {
	hosts, _, _ := strings.Cut(place(rest), "/")
	host, _, _ := strings.Cut(hosts, ",")
	if host == "" || host == "..." {
		return ""
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	port := defaultPorts[kind]
	if mode == "sentinel" {
		port = "26379"
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// protocol returns the protocol of a server: redis, memcached, postgres, http, tls, or "" if
// unknown.
func protocol(ctx context.Context, address string) string {
	reply := exchange(ctx, address, "PING\r\n")
	switch {
	case strings.HasPrefix(reply, "-ERR TLS"): // a weir server
		return "tls"
	case strings.HasPrefix(reply, "+"), strings.HasPrefix(reply, "-"):
		return "redis"
	case strings.HasPrefix(reply, "ERROR"):
		return "memcached"
	case strings.HasPrefix(reply, "HTTP/"):
		return "http"
	}
	// the request for TLS
	if reply = exchange(ctx, address, "\x00\x00\x00\x08\x04\xd2\x16\x2f"); reply == "S" || reply == "N" {
		return "postgres"
	}
	if speaksTLS(ctx, address) {
		return "tls"
	}
	return ""
}

// exchange sends a few bytes to a server and returns the beginning of the reply.
func exchange(ctx context.Context, address, text string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }() // nothing is lost
	_ = conn.SetDeadline(time.Now().Add(probeTime))
	if _, err := conn.Write([]byte(text)); err != nil {
		return ""
	}
	reply := make([]byte, 16)
	n, _ := conn.Read(reply)
	return string(reply[:n])
}

// speaksTLS reports whether a server takes part in a handshake, with any certificate.
func speaksTLS(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	seen := false
	dialer := tls.Dialer{Config: &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent
		VerifyConnection:   func(tls.ConnectionState) error { seen = true; return nil },
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return seen || err == nil
}
