package middleware

import (
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"github.com/weirlimit/weir/bench/peer"
)

// newByHand is the least that people write themselves: a limiter for each address, forgotten never, and nothing told.
func newByHand(b peer.Budget) (wrapper, error) {
	var clients sync.Map
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			if err != nil {
				http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
				return
			}
			l, ok := clients.Load(host)
			if !ok {
				l, _ = clients.LoadOrStore(host, rate.NewLimiter(rate.Limit(b.PerSecond()), int(b.Count)))
			}
			if !l.(*rate.Limiter).Allow() {
				http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}, nil
}

func newBare(peer.Budget) (wrapper, error) {
	return func(next http.Handler) http.Handler { return next }, nil
}
