package middleware

import (
	"net"
	"net/http"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/weirlimit/weir/bench/peer"
)

func newTollbooth(b peer.Budget) (wrapper, error) {
	l := tollbooth.NewLimiter(b.PerSecond(), nil).SetBurst(int(b.Count))
	l.SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"})
	return tollbooth.HTTPMiddleware(l), nil
}

// newHTTPRate has the key that httprate's documentation advises, of the connection's address.
func newHTTPRate(b peer.Budget) (wrapper, error) {
	return httprate.LimitBy(int(b.Count), b.Period, func(r *http.Request) (string, error) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		return httprate.CanonicalizeIP(host), err
	}), nil
}

func newUlule(b peer.Budget) (wrapper, error) {
	l := ulule.New(ululememory.NewStore(), ulule.Rate{Period: b.Period, Limit: b.Count})
	return stdlib.NewMiddleware(l).Handler, nil
}

func newThrottled(b peer.Budget) (wrapper, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(b.Count), b.Period), MaxBurst: int(b.Count) - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	return (&throttled.HTTPRateLimiterCtx{RateLimiter: l, VaryBy: &throttled.VaryBy{RemoteAddr: true}}).RateLimit, nil
}

func newSethvargo(b peer.Budget) (wrapper, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: uint64(b.Count), Interval: b.Period})
	if err != nil {
		return nil, err
	}
	m, err := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	if err != nil {
		return nil, err
	}
	return m.Handle, nil
}
