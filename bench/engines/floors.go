package engines

import (
	"context"

	"github.com/redis/rueidis"
)

// dialBare opens a rueidis client as weir's own store does: one server, two connections, no client-side cache, nothing sent
// twice. It gathers the commands of many goroutines into pipelines.
func dialBare(url string) (rueidis.Client, error) {
	o, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	o.DisableCache, o.DisableRetry, o.ForceSingleClient, o.PipelineMultiplex = true, true, true, 1
	return rueidis.NewClient(o)
}

type increment struct{ c rueidis.Client }

func openIncrement(_ context.Context, url string, _ budget) (limiter, func(), error) {
	c, err := dialBare(url)
	if err != nil {
		return nil, nil, err
	}
	return increment{c}, c.Close, nil
}

// Allow implements limiter, and always admits.
func (i increment) Allow(ctx context.Context, key string) (bool, error) {
	return true, i.c.Do(ctx, i.c.B().Incr().Key(key).Build()).Error()
}

type bareScript struct {
	c rueidis.Client
	s *rueidis.Lua
}

func openScript(_ context.Context, url string, _ budget) (limiter, func(), error) {
	c, err := dialBare(url)
	if err != nil {
		return nil, nil, err
	}
	return bareScript{c, rueidis.NewLuaScript("return 1")}, c.Close, nil
}

// Allow implements limiter, and always admits.
func (s bareScript) Allow(ctx context.Context, key string) (bool, error) {
	return true, s.s.Exec(ctx, s.c, []string{key}, nil).Error()
}
