// Package inprocess times weir beside its peers in one process. See ../README.md.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
)

// Command is the subcommand.
var Command = harness.Command{
	Name: "inprocess", Short: "the library beside other Go libraries; about 10 minutes",
	Rounds: 6, Time: 300 * time.Millisecond, Least: time.Millisecond, Most: load.MaxTime,
	Flags: []string{"workloads", "benchstat", "profiles", "skip-memory"},
	Run:   run, Measure: measure,
}

// memory is the workload that measures bytes per key.
const memory = "memory"

// A plan is a selection of pairs, and their results.
type plan struct {
	harness.Settings
	peers     []peer.Peer
	workloads []load.Workload
	results   harness.Results
}

func newPlan(s harness.Settings) (p plan, err error) {
	p.Settings = s
	if p.peers, err = harness.Contenders(s, peer.All()); err == nil {
		p.workloads, err = harness.Workloads(s, load.Workloads())
	}
	return p, err
}

func run(ctx context.Context, s harness.Settings, out, progress io.Writer) error {
	p, err := newPlan(s)
	if err != nil {
		return err
	}
	one := func(name, workload string) error {
		fmt.Fprintf(progress, "  %s: %s\n", workload, name)
		r := harness.Result{Contender: name, Workload: workload}
		err := harness.Spawn(ctx, s.Command, s.Slot(name, workload), &r)
		p.results = append(p.results, r)
		return err
	}
	err = harness.Rounds(p.Rounds, progress, p.workloads, p.peers, func(w load.Workload, each peer.Peer) error {
		if w.Denied && each.Kind == peer.Pacer {
			return nil
		}
		return one(each.Name, w.Slug)
	})
	for _, each := range p.peers {
		if err != nil {
			return err
		}
		if !p.SkipMemory && (each.Kind != peer.Ours || each.Name == peer.Weir) { // weir's have one table
			err = one(each.Name, memory)
		}
	}
	if err == nil {
		err = s.WriteBenchstat(p.results)
	}
	if err != nil {
		return err
	}
	return p.print(out)
}

// measure carries out one slot.
func measure(_ context.Context, s harness.Slot) (any, error) {
	p, err := harness.Find("peer", s.Contender, peer.All())
	if err != nil {
		return nil, err
	}
	stop, err := s.StartProfile()
	if err != nil {
		return nil, err
	}
	defer stop()
	r := harness.Result{Contender: p.Name, Workload: s.Workload}
	if s.Workload == memory {
		r.Heap[0], r.Heap[1], err = load.Heap(p)
		return r, err
	}
	w, err := harness.Find("workload", s.Workload, load.Workloads())
	if err == nil {
		r.Timing, err = w.Run(p, s.Time)
	}
	return r, err
}
