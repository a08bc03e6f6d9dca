// Command inprocess times weir beside its peers, in one run, interleaved.
//
// Every (workload, peer) pair runs once a round in a process of its own, so that no peer meets the heap, the garbage
// or the cache of another. The order of the peers is turned by one in each round. See ../README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
)

// settings are the command's flags.
type settings struct {
	rounds     int
	time       time.Duration
	peers      string
	workloads  string
	benchstat  string
	slotPeer   string
	slotOf     string
	skipMemory bool
}

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "inprocess:", err)
		os.Exit(1)
	}
}

func run(args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	if s.slotOf != "" {
		return runSlot(s, out)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	p, err := makePlan(s)
	if err != nil {
		return err
	}
	results, err := p.measure(ctx, progress)
	if err != nil {
		return err
	}
	if s.benchstat != "" {
		if err := writeBenchstat(s.benchstat, results); err != nil {
			return err
		}
	}
	return p.print(out, results)
}

func parse(args []string, usage io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("inprocess", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&s.rounds, "rounds", 6, "how often each pair is measured, 1 to 100")
	f.DurationVar(&s.time, "time", 300*time.Millisecond, "how long a measurement takes, 1ms to 3s")
	f.StringVar(&s.peers, "peers", "", "only the peers whose name has one of these parts, with commas (empty: all)")
	f.StringVar(&s.workloads, "workloads", "", "only these workloads, by their short names, with commas (empty: all)")
	f.StringVar(&s.benchstat, "benchstat", "", "also write every measurement to this file, in the format that benchstat reads")
	f.BoolVar(&s.skipMemory, "skip-memory", false, "leave the bytes per key out")
	f.StringVar(&s.slotPeer, "slot-peer", "", "used by the command itself: measure this peer here")
	f.StringVar(&s.slotOf, "slot", "", "used by the command itself: the workload to measure here, or memory")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("argument %q; accepted: flags only", f.Arg(0))
	case s.rounds < 1 || s.rounds > 100:
		return s, fmt.Errorf("-rounds is %d; accepted: 1 to 100", s.rounds)
	case s.time < time.Millisecond || s.time > load.MaxTime:
		return s, fmt.Errorf("-time is %v; accepted: 1ms to %v", s.time, load.MaxTime)
	}
	return s, nil
}

// memory is the slot that measures bytes per key.
const memory = "memory"

// runSlot measures one pair and writes a result as JSON.
func runSlot(s settings, out io.Writer) error {
	p, err := peer.Find(s.slotPeer)
	if err != nil {
		return err
	}
	r := result{Peer: p.Name, Workload: s.slotOf}
	if s.slotOf == memory {
		r.Heap, err = load.Measure(p)
	} else {
		var w load.Workload
		if w, err = load.Find(s.slotOf); err == nil {
			r.Timing, err = w.Run(p, s.time)
		}
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// selected reports whether the name has one of the parts, which stand in a list with commas.
func selected(name, parts string) bool {
	for p := range strings.SplitSeq(parts, ",") {
		if strings.Contains(name, p) {
			return true
		}
	}
	return false
}
