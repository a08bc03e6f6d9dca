package remote_test

import (
	"context"
	"sync"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/remote"
)

// A daemon is a weir server in this process, which can be restarted at its address.
type daemon struct {
	cfg   server.Config
	apart bool // a new memory for each name
	stop  func(t testing.TB)
}

// start runs a server on a free port until the test ends.
func start(t testing.TB, cfg server.Config) *daemon {
	t.Helper()
	cfg.RESP, cfg.HTTP, cfg.Admin = "127.0.0.1:0", server.Off, server.Off
	d := &daemon{cfg: cfg}
	d.begin(t)
	return d
}

// startApart runs a server with a memory for each name.
func startApart(t testing.TB, trusts bool) *daemon {
	t.Helper()
	d := &daemon{cfg: server.Config{RESP: "127.0.0.1:0", HTTP: server.Off, Admin: server.Off, TrustClientTime: trusts}, apart: true}
	d.begin(t)
	return d
}

func (d *daemon) begin(t testing.TB) {
	t.Helper()
	d.run(t)
	t.Cleanup(func() { d.stop(t) })
}

func (d *daemon) run(t testing.TB) {
	t.Helper()
	if d.apart {
		d.cfg.Opened = newApart()
	}
	d.cfg.MaxPeriod = server.MostMaxPeriod // the limits of the suite have any
	s, err := server.New(d.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	d.cfg.RESP = s.RESPAddr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	d.stop = func(t testing.TB) {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		d.stop = func(testing.TB) {}
	}
}

func (d *daemon) restart(t testing.TB) {
	t.Helper()
	d.stop(t)
	d.run(t)
}

func (d *daemon) url() string { return "weir://" + d.cfg.RESP }

func open(t testing.TB, url string, o remote.Options) *remote.Store {
	t.Helper()
	s, err := remote.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bind(t testing.TB, s store.Store, spec store.Spec) store.Binding {
	t.Helper()
	b, err := s.Bind(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func limit(text string) store.Spec { return store.Spec{Limit: algorithm.MustParseLimit(text)} }

// apart keeps each name in a memory of its own, and without a name each key. The suite has a clock for each of those; the keys of one memory should have one.
type apart struct {
	mu     sync.Mutex
	byName map[string]*memory.Store
}

func newApart() *apart { return &apart{byName: map[string]*memory.Store{}} }

func (a *apart) memory(name string) *memory.Store {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.byName[name]
	if s == nil {
		s = memory.New(memory.Options{})
		a.byName[name] = s
	}
	return s
}

func (a *apart) Bind(spec store.Spec) (store.Binding, error) {
	b, err := a.memory(spec.Name).Bind(spec)
	if err != nil || spec.Name != "" {
		return b, err
	}
	return apartBinding{b, a, spec}, nil
}

type apartBinding struct {
	store.Binding // for its clock
	apart         *apart
	spec          store.Spec
}

func (b apartBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	binding, err := b.apart.memory("\x00" + key).Bind(b.spec)
	if err != nil {
		return algorithm.Verdict{}, err
	}
	return binding.Do(ctx, key, op, now)
}

func (b apartBinding) Now() int64 { return b.Binding.(store.Clock).Now() }
