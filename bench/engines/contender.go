package engines

import (
	"context"
	"time"
)

// A limiter answers whether one request of a key may pass now. It may be called by many goroutines at once. An error
// means that it could not decide.
type limiter interface {
	Allow(ctx context.Context, key string) (bool, error)
}

// An opener builds a limiter at the URL of a space, and returns what ends it.
type opener func(ctx context.Context, url string, b budget) (limiter, func(), error)

// A budget is the limit that every contender is given: Count units per Period, all of them at once if they are there.
type budget struct {
	Count  int64
	Period time.Duration
}

// A kind says how a contender's figures are to be read.
type kind int

const (
	// ours is weir.
	ours kind = iota
	// documented is a peer as its documentation shows it.
	documented
	// tuned is a peer over a faster way to Redis, which its client calls experimental.
	tuned
	// floor does less than a limiter must.
	floor
)

// A contender is something that decides by way of an engine.
type contender struct {
	// name is what the tables call it.
	name string
	kind kind
	// engine is the name of what it stands on.
	engine string
	// space is where it keeps its keys: a database number of Redis, a table of PostgreSQL, a prefix on memcached.
	// Contenders of one space keep the same, so that it is filled once.
	space string
	// sends is how many commands of a client one call of a command in Redis' commandstats stands for, which also
	// count what scripts call.
	sends map[string]float64
	// open builds the limiter and returns what ends it.
	open opener
	// decides is false for one that keeps no budget.
	decides bool
}

// script is what a contender sends whose decision is one call of a script.
var script = map[string]float64{"evalsha": 1, "eval": 1}

// swaps is what throttled sends: TIME and GET in one pipeline, then SETNX and EXPIRE or a script that compares and sets.
// A GET inside that script is not sent.
var swaps = map[string]float64{"time": 2, "setnx": 1, "set": 1, "expire": 1, "eval": 1}

// weirRedis is the contender that the others are compared with.
const weirRedis = "weir"

// contenders returns all of them, in the order of the tables.
func contenders() []contender {
	return []contender{
		{weirRedis, ours, redisEngine, "0", script, openWeir(redisEngine), true},
		{"redis_rate", documented, redisEngine, "1", script, openRedisRate(false), true},
		{"throttled", documented, redisEngine, "2", swaps, openThrottled(false), true},
		{"redis_rate, auto-pipelined", tuned, redisEngine, "1", script, openRedisRate(true), true},
		{"throttled, auto-pipelined", tuned, redisEngine, "2", swaps, openThrottled(true), true},
		{"bare INCR", floor, redisEngine, "3", map[string]float64{"incr": 1}, openIncrement, false},
		{"bare EVALSHA", floor, redisEngine, "3", script, openScript, false},
		{"weir, postgres", ours, postgresEngine, "logged", nil, openWeir(postgresEngine), true},
		{"weir, postgres, synchronous_commit=off", ours, postgresEngine, "late", nil, openWeir(postgresEngine), true},
		{"weir, postgres, unlogged", ours, postgresEngine, "unlogged", nil, openWeir(postgresEngine), true},
		{"weir, memcached", ours, memcachedEngine, "", nil, openWeir(memcachedEngine), true},
	}
}

// Key returns the name.
func (c contender) Key() string { return c.name }

// url is where the contender's space is, on the engine at the address.
func (c contender) url(address string) string {
	switch c.engine {
	case postgresEngine:
		url := "postgres://postgres@" + address + "/postgres?sslmode=disable&weir_table=weir_" + c.space
		switch c.space {
		case "unlogged":
			url += "&weir_unlogged=true"
		case "late":
			url += "&synchronous_commit=off"
		}
		return url
	case memcachedEngine:
		return "memcached://" + address
	}
	return "redis://" + address + "/" + c.space
}
