package admission

import (
	"sync"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// mostLocal is how many limiters in memory are kept ready. Those beyond are made for each request: what they have counted is in the store.
const mostLocal = 256

// local has a limiter in memory for each that falls back to one.
type local struct {
	store *memory.Store
	mu    sync.RWMutex
	ready map[localKey]*weir.Limiter
}

// A localKey says whose state is counted.
type localKey struct {
	name  string
	limit weir.Limit
}

func newLocal() *local {
	return &local{store: memory.New(memory.Options{}), ready: map[localKey]*weir.Limiter{}}
}

// of returns a limiter in memory of the same name and limit.
func (c *local) of(l *weir.Limiter) (*weir.Limiter, error) {
	k := localKey{l.Name(), l.Limit()}
	c.mu.RLock()
	found := c.ready[k]
	c.mu.RUnlock()
	if found != nil {
		return found, nil
	}
	opts := []weir.Option{weir.WithStore(c.store)}
	if k.name != "" {
		opts = append(opts, weir.WithName(k.name))
	}
	made, err := weir.New(k.limit, opts...)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ready) < mostLocal {
		c.ready[k] = made
	}
	return made, nil
}
