package engines

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	goredisstore "github.com/throttled/throttled/v2/store/goredisstore.v9"
)

// poolSize is what go-redis makes of its default on the two cores of the machine that the tables come from, 10 a core.
// It is said here because the load may be confined to fewer.
const poolSize = 20

// dial opens a go-redis client with its defaults (RESP3). Piped, it is the client's drop-in face that gathers the commands of
// many goroutines into pipelines, with its defaults.
func dial(url string, piped bool) (redis.UniversalClient, func(), error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, err
	}
	o.PoolSize = poolSize
	c := redis.NewClient(o)
	end := func() { _ = c.Close() }
	if !piped {
		return c, end, nil
	}
	p, err := c.AutoPipeline()
	return p, end, err
}

type redisRate struct {
	l     *redis_rate.Limiter
	limit redis_rate.Limit
}

func openRedisRate(piped bool) opener {
	return func(_ context.Context, url string, b budget) (limiter, func(), error) {
		c, end, err := dial(url, piped)
		if err != nil {
			return nil, end, err
		}
		limit := redis_rate.Limit{Rate: int(b.Count), Burst: int(b.Count), Period: b.Period}
		return redisRate{redis_rate.NewLimiter(c), limit}, end, nil
	}
}

// Allow implements limiter.
func (r redisRate) Allow(ctx context.Context, key string) (bool, error) {
	res, err := r.l.Allow(ctx, key, r.limit)
	return err == nil && res.Allowed > 0, err
}

type throttledLimiter struct{ l *throttled.GCRARateLimiterCtx }

// openThrottled stands on go-redis, not redigo: with that one throttled sends SELECT before every command.
func openThrottled(piped bool) opener {
	return func(_ context.Context, url string, b budget) (limiter, func(), error) {
		c, end, err := dial(url, piped)
		if err != nil {
			return nil, end, err
		}
		store, err := goredisstore.NewCtx(c, "throttled:")
		if err != nil {
			return nil, end, err
		}
		quota := throttled.RateQuota{MaxRate: throttled.PerDuration(int(b.Count), b.Period), MaxBurst: int(b.Count) - 1}
		l, err := throttled.NewGCRARateLimiterCtx(store, quota)
		return throttledLimiter{l}, end, err
	}
}

// Allow implements limiter. It ends in an error after ten lost races.
func (t throttledLimiter) Allow(ctx context.Context, key string) (bool, error) {
	limited, _, err := t.l.RateLimitCtx(ctx, key, 1)
	return err == nil && !limited, err
}
