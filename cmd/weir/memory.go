package main

import (
	"os"
	"runtime/debug"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store/memory"
)

// besideKeys is the part of the soft memory limit for connections, policies, remembered limits and
// Go's runtime. Floods of keys and limits take about 170 MB of it.
const besideKeys = 256 << 20

// softLimit returns Go's soft memory limit for a daemon with its state in memory: twice the memory
// of the keys, and besideKeys. It is not ok if GOMEMLIMIT is set, or with an engine.
func softLimit(cfg server.Config) (bytes int64, ok bool) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set || cfg.Store != server.InMemory {
		return 0, false
	}
	keys := cfg.Memory
	if keys == 0 {
		keys = memory.DefaultMaxBytes
	}
	return 2*keys + besideKeys, true
}

// limitMemory sets the soft memory limit until restore is called.
func limitMemory(cfg server.Config) (restore func()) {
	limit, ok := softLimit(cfg)
	if !ok {
		return func() {}
	}
	before := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
}
