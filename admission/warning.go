package admission

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/store"
)

// What is warned of, each at most once a second: while a store is away, every request fails.
const (
	undecided = iota
	unsettled
	unrenewed
	negative
	warnings
)

// A warning knows when it was last logged, and how often it was not since.
type warning struct{ second, left atomic.Int64 }

// warn logs an error. It says nothing of the request.
func (g *Gate) warn(which int, message string, err error) {
	w := &g.warned[which]
	now, last := time.Now().Unix(), w.second.Load()
	if now == last || !w.second.CompareAndSwap(last, now) {
		w.left.Add(1)
		return
	}
	g.log().Warn(message, "error", store.WithoutKeys(err), "not_logged", w.left.Swap(0))
}

// warnOfProxy logs, once, a request with the address of a client in a header field, from a peer
// that is not a trusted proxy. It logs the address of the peer, and no value of the request.
func (g *Gate) warnOfProxy(r *http.Request) {
	if g.client == nil || g.proxied.Load() {
		return
	}
	field := g.client.Ignored(r)
	if field == "" || !g.proxied.CompareAndSwap(false, true) {
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
