package admission

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/weirlimit/weir/identity"
)

// The kinds of warnings, each sampled by itself.
const (
	undecided = iota
	unsettled
	unrenewed
	negative
	warnings
)

// warn logs an error, without values of the request.
func (g *Gate) warn(which int, message string, err error) {
	g.samples[which].Warn(g.log(), message, err)
}

// warnOfProxy logs, once, a request with the address of a client in a header field, from a peer
// that is not a trusted proxy. It logs the address of the peer, and no value of the request.
func (g *Gate) warnOfProxy(r *http.Request, field string) {
	if !g.proxied.CompareAndSwap(false, true) {
		return
	}
	peer := "unix"
	if addr := identity.Peer.Addr(r); addr.IsValid() {
		peer = addr.String()
	}
	g.log().Warn("a request has "+field+", and its peer is not a trusted proxy: if the peer is your proxy, all clients behind it count as one. This is logged once",
		"peer", peer, "set", fmt.Sprintf("ClientIP, or the client_ip source of Key, from identity.Behind(%q, %q)", field, peer))
}

func (g *Gate) log() *slog.Logger {
	if g.opts.Log != nil {
		return g.opts.Log
	}
	return slog.Default()
}
