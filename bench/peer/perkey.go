package peer

import (
	"math"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// perKey keeps one limiter of a library that knows no keys for each key, as its users do.
type perKey struct {
	m     sync.Map
	fresh func() any
}

func (p *perKey) get(key string) any {
	if v, ok := p.m.Load(key); ok {
		return v
	}
	v, _ := p.m.LoadOrStore(key, p.fresh())
	return v
}

type xtime struct{ perKey }

func newXTime(b Budget) (Limiter, error) {
	return &xtime{perKey{fresh: func() any { return rate.NewLimiter(rate.Limit(b.PerSecond()), int(b.Count)) }}}, nil
}

// Allow implements Limiter.
func (x *xtime) Allow(key string) bool { return x.get(key).(*rate.Limiter).Allow() }

type xtimeLocked struct {
	mu sync.Mutex
	m  map[string]*rate.Limiter
	b  Budget
}

func newXTimeLocked(b Budget) (Limiter, error) {
	return &xtimeLocked{m: map[string]*rate.Limiter{}, b: b}, nil
}

// Allow implements Limiter. The lock is held for the map only.
func (x *xtimeLocked) Allow(key string) bool {
	x.mu.Lock()
	l := x.m[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(x.b.PerSecond()), int(x.b.Count))
		x.m[key] = l
	}
	x.mu.Unlock()
	return l.Allow()
}

type juju struct{ perKey }

func newJuju(b Budget) (Limiter, error) {
	return &juju{perKey{fresh: func() any { return ratelimit.NewBucket(b.Interval(), b.Count) }}}, nil
}

// Allow implements Limiter.
func (j *juju) Allow(key string) bool { return j.get(key).(*ratelimit.Bucket).TakeAvailable(1) == 1 }

type failsafe struct{ perKey }

func newFailsafe(b Budget) (Limiter, error) {
	return &failsafe{perKey{fresh: func() any { return ratelimiter.NewBursty[any](uint(b.Count), b.Period) }}}, nil
}

// Allow implements Limiter.
func (f *failsafe) Allow(key string) bool {
	return f.get(key).(ratelimiter.RateLimiter[any]).TryAcquirePermit()
}

type pacer struct{ perKey }

// newUber paces at a request a nanosecond, faster than it can be called, so that it never sleeps: what
// is timed is the whole of its bookkeeping and none of its waiting.
func newUber(Budget) (Limiter, error) {
	return &pacer{perKey{fresh: func() any { return uber.New(int(math.Pow10(9)), uber.Per(time.Second)) }}}, nil
}

// Allow implements Limiter. It always admits.
func (p *pacer) Allow(key string) bool {
	p.get(key).(uber.Limiter).Take()
	return true
}
