package faults

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/testengine"
)

// network brings about all faults of the way to an engine.
func (s system) network(t *testing.T, server *testengine.Server) {
	p := testengine.NewProxy(t, server)
	heal := func(*run) { p.Heal() }
	set := func(f testengine.Fault) func(*run) { return func(*run) { p.Set(f) } }
	flow := func(f testengine.Flow) func(*run) { return set(testengine.Fault{Requests: f, Replies: f}) }
	for _, f := range []fault{
		{name: "network delays by half the timeout", strike: flow(testengine.Flow{Delay: timeout / 4}), mend: heal},
		{name: "network delays beyond the timeout", strike: flow(testengine.Flow{Delay: timeout}), mend: heal},
		{name: "network at 20 kB per second", strike: flow(testengine.Flow{Rate: 20_000}), mend: heal},
		{name: "network holds all bytes", strike: flow(testengine.Flow{Hold: true}), mend: heal},
		{name: "network loses requests", strike: set(testengine.Fault{Requests: testengine.Flow{Drop: true}}), mend: heal},
		{name: "network loses replies", strike: set(testengine.Fault{Replies: testengine.Flow{Drop: true}}), mend: heal},
		{name: "connections are reset", strike: repeat(p.Cut)},
		{name: "connections are reset and refused", strike: func(*run) {
			p.Set(testengine.Fault{Refuse: true})
			p.Cut()
		}, mend: heal},
		{name: "connections are closed toward the engine", strike: repeat(p.CloseRequests)},
		{name: "connections are closed toward the store", strike: repeat(p.CloseReplies)},
	} {
		f.by = strings.Replace(s.url, server.Addr(), p.Addr(), 1)
		s.suffer(t, f)
	}
}

// repeat brings a fault about again and again, with some calls between.
func repeat(f func()) func(*run) {
	return func(r *run) {
		times := 4
		if !testing.Short() {
			times = 20
		}
		for range times {
			f()
			r.load.more(r, goroutines)
		}
	}
}

// killed, closed and stopped are faults of the engine's processes.
func killed(server *testengine.Server, loses string) fault {
	return fault{
		name: "kill -9", loses: loses,
		strike: func(r *run) { server.KillAll(r) },
		mend:   func(r *run) { server.Start(r) },
	}
}

func closed(server *testengine.Server) fault {
	f := stopped(server)
	f.name, f.closed = "SIGSTOP, and the stores are closed", true
	return f
}

func stopped(server *testengine.Server) fault {
	return fault{
		name:   "SIGSTOP",
		strike: func(r *run) { server.Pause(r) },
		mend:   func(r *run) { server.Resume(r) },
	}
}
