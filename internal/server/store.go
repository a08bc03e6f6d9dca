package server

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

const (
	// openTimeout bounds an attempt of Open to open an engine.
	openTimeout = 5 * time.Second
	// openPause is the time between two attempts, with WaitForStore.
	openPause = 250 * time.Millisecond
	// MostWaitForStore is the largest WaitForStore accepted.
	MostWaitForStore = time.Hour
)

// A kept is the store, and what is known of it besides.
type kept struct {
	store.Store
	kind   string // "memory", or the scheme of a URL
	shown  string // for people
	memory *memory.Store
	check  func(context.Context) error
	closer io.Closer // nil: nobody here closes it
	calls  *engineCalls
}

// observe counts the calls of the store's engine, if it has one.
func (k *kept) observe() {
	if g, ok := k.Store.(store.Guarded); ok {
		k.calls = newEngineCalls()
		g.Breaker().Observe(k.calls.observe)
	}
}

func (k *kept) close() error {
	if k.closer == nil {
		return nil
	}
	return k.closer.Close()
}

// open opens the store of the configuration.
func (c Config) open(ctx context.Context) (*kept, error) {
	switch {
	case c.Opened != nil:
		check, err := checker(c.Opened)
		return &kept{Store: c.Opened, kind: "other", shown: "a store of the program's", check: check}, err
	case c.inMemory():
		m := memory.New(memory.Options{MaxBytes: c.Memory, MaxKeys: c.MaxKeys, Overflow: c.Overflow})
		return &kept{Store: m, kind: InMemory, shown: InMemory, memory: m, closer: m,
			check: func(context.Context) error { return nil }}, nil
	}
	engine, err := c.openEngine(ctx)
	if err != nil {
		return nil, err
	}
	if warning := engines.Warning(c.Store); warning != "" {
		c.Log.Warn("store: "+warning, "store", engines.Shown(c.Store))
	}
	kind, _ := engines.Scheme(c.Store)
	return &kept{Store: engine, kind: kind, shown: engines.Shown(c.Store), check: engine.Check, closer: engine}, nil
}

// openEngine opens the store of the URL. While the engine does not serve, it tries again for
// WaitForStore; if that is 0, it returns a store that opens the engine later.
func (c Config) openEngine(ctx context.Context) (engines.Store, error) {
	options := engines.Options{TrustClientTime: c.TrustClientTime}
	end := time.Now().Add(c.WaitForStore)
	for {
		attempt, cancel := context.WithTimeout(ctx, openTimeout)
		s, err := engines.Open(attempt, c.Store, options)
		cancel()
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil || !engines.Transient(err) || c.WaitForStore > 0 && !time.Now().Before(end):
			return nil, openError(c.Store, err)
		case c.WaitForStore == 0:
			options.Lazy = true
			return engines.Open(ctx, c.Store, options)
		}
		select {
		case <-time.After(min(openPause, time.Until(end))):
		case <-ctx.Done():
		}
	}
}

// checker returns what asks a store whether it can decide: its own Check, or a peek at a key, which changes nothing.
func checker(s store.Store) (func(context.Context) error, error) {
	if c, ok := s.(interface{ Check(context.Context) error }); ok {
		return c.Check, nil
	}
	b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("1/1s"), Name: "weir.check"})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := b.Do(ctx, "", algorithm.Op{}, store.OwnClock)
		return err
	}, nil
}

// openError returns the error for a store that can't be opened. It has the accepted values from the
// engine's error, if any.
func openError(url string, err error) *ConfigError {
	shown := engines.Shown(url)
	problem, accept, ok := strings.Cut(strings.TrimPrefix(whyNot(err), "store is "+shown+": "), "; accepted: ")
	if !ok {
		accept = "a store that answers"
	}
	return &ConfigError{"store", shown, problem, accept}
}

// whyNot says in words why an engine can't be used.
func whyNot(err error) string {
	var dial *net.OpError
	if errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &dial) && dial.Addr != nil {
		return "nothing listens at " + dial.Addr.String()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + openTimeout.String()
	}
	return strings.TrimPrefix(err.Error(), "weir: ")
}
