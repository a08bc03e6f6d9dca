package engines

import (
	"context"
	"fmt"
	"io"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
	"github.com/weirlimit/weir/store/postgres"
	"github.com/weirlimit/weir/store/redis"
)

type weirLimiter struct{ l *weir.Limiter }

// A closer is a store with connections.
type closer interface {
	store.Store
	io.Closer
}

// openStore opens the engine's store with its defaults.
func openStore(ctx context.Context, engine, url string) (closer, error) {
	switch engine {
	case redisEngine:
		return redis.Open(ctx, url, redis.Options{})
	case postgresEngine:
		return postgres.Open(ctx, url, postgres.Options{})
	case memcachedEngine:
		return memcached.Open(ctx, url, memcached.Options{})
	}
	return nil, fmt.Errorf("engine is %q; accepted: %q", engine, engineNames)
}

func openWeir(engine string) opener {
	return func(ctx context.Context, url string, b budget) (limiter, func(), error) {
		s, err := openStore(ctx, engine, url)
		if err != nil {
			return nil, nil, err
		}
		end := func() { _ = s.Close() }
		l, err := weir.New(weir.Limit{Count: b.Count, Period: b.Period}, weir.WithStore(s))
		return weirLimiter{l}, end, err
	}
}

// Allow implements limiter.
func (w weirLimiter) Allow(ctx context.Context, key string) (bool, error) {
	d, err := w.l.Take(ctx, key, 1)
	return d.Allowed, err
}
