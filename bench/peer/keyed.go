package peer

import (
	"context"
	"net/http"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/mennanov/limiters"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululememory "github.com/ulule/limiter/v3/drivers/store/memory"
)

type throttledLimiter struct{ l *throttled.GCRARateLimiterCtx }

func newThrottled(b Budget) (Limiter, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(b.Count), b.Period), MaxBurst: int(b.Count) - 1}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	return throttledLimiter{l}, err
}

// Allow implements Limiter. An error, which throttled gives after ten lost races, counts as not admitted.
func (t throttledLimiter) Allow(key string) bool {
	limited, _, err := t.l.RateLimitCtx(context.Background(), key, 1)
	return err == nil && !limited
}

type ululeLimiter struct{ l *ulule.Limiter }

func newUlule(b Budget) (Limiter, error) {
	return ululeLimiter{ulule.New(ululememory.NewStore(), ulule.Rate{Period: b.Period, Limit: b.Count})}, nil
}

// Allow implements Limiter.
func (u ululeLimiter) Allow(key string) bool {
	c, err := u.l.Get(context.Background(), key)
	return err == nil && !c.Reached
}

type sethvargo struct{ s limiter.Store }

func newSethvargo(b Budget) (Limiter, error) {
	s, err := memorystore.New(&memorystore.Config{Tokens: uint64(b.Count), Interval: b.Period})
	return sethvargo{s}, err
}

// Allow implements Limiter.
func (s sethvargo) Allow(key string) bool {
	_, _, _, ok, err := s.s.Take(context.Background(), key)
	return err == nil && ok
}

type tollboothPeer struct{ l *tollboothlimiter.Limiter }

func newTollbooth(b Budget) (Limiter, error) {
	return tollboothPeer{tollbooth.NewLimiter(b.PerSecond(), nil).SetBurst(int(b.Count))}, nil
}

// Allow implements Limiter.
func (t tollboothPeer) Allow(key string) bool { return !t.l.LimitReached(key) }

type httpRate struct {
	l *httprate.RateLimiter
	r *http.Request
}

// newHTTPRate names no headers, so that none is set: what is timed is the decision and the formatting that
// httprate does in any case.
func newHTTPRate(b Budget) (Limiter, error) {
	l := httprate.NewRateLimiter(int(b.Count), b.Period, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	return httpRate{l, new(http.Request).WithContext(context.Background())}, nil
}

// Allow implements Limiter.
func (h httpRate) Allow(key string) bool { return !h.l.OnLimit(noReply{}, h.r, key) }

type noReply struct{}

func (noReply) Header() http.Header         { return nil }
func (noReply) Write(p []byte) (int, error) { return len(p), nil }
func (noReply) WriteHeader(int)             {}

type mennanov struct {
	r     *limiters.Registry
	fresh func() any
	ttl   time.Duration
}

func newMennanov(b Budget) (Limiter, error) {
	clock, logger := limiters.NewSystemClock(), limiters.NewStdLogger()
	fresh := func() any {
		return limiters.NewTokenBucket(b.Count, b.Interval(), limiters.NewLockNoop(), limiters.NewTokenBucketInMemory(), clock, logger)
	}
	return &mennanov{limiters.NewRegistry(), fresh, b.Period}, nil
}

// Allow implements Limiter.
func (m *mennanov) Allow(key string) bool {
	bucket := m.r.GetOrCreate(key, m.fresh, m.ttl, time.Now()).(*limiters.TokenBucket)
	_, err := bucket.Limit(context.Background())
	return err == nil
}
