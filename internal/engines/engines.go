// Package engines opens the store that a URL names.
package engines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirlimit/weir/internal/nearest"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memcached"
	"github.com/weirlimit/weir/store/postgres"
	"github.com/weirlimit/weir/store/redis"
	"github.com/weirlimit/weir/store/remote"
)

// A Store is what Open returns: a store that can be closed, and asked whether its engine answers.
type Store interface {
	store.Store
	store.Guarded
	Check(ctx context.Context) error
	Close() error
}

// Options for Open.
type Options struct {
	// TrustClientTime lets callers tell the time of an operation.
	TrustClientTime bool
	// Lazy makes Open return without a connection. The store fails until its engine answers: see store.Breaker. URLs that make
	// no sense are errors of Open all the same.
	Lazy bool
}

type opener func(ctx context.Context, url string, o Options) (Store, error)

// schemes says who opens the URLs of each scheme.
var schemes = map[string]opener{
	"redis": openRedis, "rediss": openRedis,
	"redis+cluster": openRedis, "rediss+cluster": openRedis,
	"redis+sentinel": openRedis, "rediss+sentinel": openRedis,
	"postgres": openPostgres, "postgresql": openPostgres,
	"memcached": openMemcached,
	"weir":      openRemote, "weirs": openRemote,
}

// Accepted says what a URL may be.
func Accepted() string {
	return strings.Join(slices.Sorted(maps.Keys(schemes)), "://, ") + "://"
}

// Scheme returns the scheme of a URL: the kind of engine. It is false for a URL of no engine.
func Scheme(url string) (string, bool) {
	scheme, _, found := strings.Cut(url, "://")
	if _, known := schemes[scheme]; !found || !known {
		return "", false
	}
	return scheme, true
}

// Open opens the store that a URL names, and fails when its engine does not answer, unless Options.Lazy is true.
func Open(ctx context.Context, url string, o Options) (Store, error) {
	scheme, ok := Scheme(url)
	if !ok {
		return nil, fmt.Errorf("weir: store is %s%s; accepted: %s", Shown(url), Suggestion(url), Accepted())
	}
	if _, rest, _ := strings.Cut(url, "://"); unclear(rest) {
		return nil, fmt.Errorf("weir: store is %s with an @ that may be part of a password; "+
			"accepted: one @, after the password, and %%40, %%2F, %%3F and %%23 for @, /, ? and # elsewhere", Shown(url))
	}
	s, err := schemes[scheme](ctx, url, o)
	if err != nil {
		if why := mismatch(ctx, url); why != "" {
			return nil, fmt.Errorf("weir: store is %s: %s", Shown(url), why)
		}
	}
	return s, err
}

// Suggestion returns "; did you mean redis://?" for a misspelt scheme, with the right scheme, or
// "".
func Suggestion(url string) string {
	scheme, _, found := strings.Cut(url, "://")
	if _, known := schemes[scheme]; !found || known {
		return ""
	}
	near := map[string]string{"valkey": "redis", "valkeys": "rediss", "pg": "postgres", "psql": "postgres", "pgsql": "postgres"}[scheme]
	if near == "" {
		near = nearest.Of(strings.ToLower(scheme), slices.Sorted(maps.Keys(schemes)))
	}
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "://?"
}

// unclear reports whether it is not clear where a password ends: at the one @, before the path and the parameters.
func unclear(rest string) bool {
	return strings.LastIndexByte(rest, '@') != -1 && strings.IndexAny(rest, "@/?#") != strings.LastIndexByte(rest, '@')
}

func openRedis(ctx context.Context, url string, o Options) (Store, error) {
	s, err := redis.Open(ctx, url, redis.Options{TrustClientTime: o.TrustClientTime, Lazy: o.Lazy})
	return opened(s, err)
}

func openPostgres(ctx context.Context, url string, o Options) (Store, error) {
	s, err := postgres.Open(ctx, url, postgres.Options{TrustClientTime: o.TrustClientTime, Lazy: o.Lazy})
	return opened(s, err)
}

func openMemcached(ctx context.Context, url string, o Options) (Store, error) {
	s, err := memcached.Open(ctx, url, memcached.Options{TrustClientTime: o.TrustClientTime, Lazy: o.Lazy})
	return opened(s, err)
}

func openRemote(ctx context.Context, url string, o Options) (Store, error) {
	s, err := remote.Open(ctx, url, remote.Options{TrustClientTime: o.TrustClientTime, Lazy: o.Lazy})
	return opened(s, err)
}

// opened keeps a nil pointer from becoming a Store.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Shown returns a URL without what may be secret in it: the user, the password and the parameters.
func Shown(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return "a text without ://"
	}
	return fmt.Sprintf("%.30s://%.200s", scheme, place(rest))
}

// place is the part of a URL that says where. It says nothing where a password may not have ended.
func place(rest string) string {
	if unclear(rest) {
		return "..."
	}
	where, _, _ := strings.Cut(rest[strings.IndexByte(rest, '@')+1:], "?")
	return where
}
