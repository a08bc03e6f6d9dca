// Command middleware times what each rate limiting middleware adds to a handler of net/http, in one run, interleaved.
//
// Every pair of workload and contender runs once a round in a process of its own. The order of the contenders is turned by one in each round. See ../README.md.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"time"
)

// settings are the command's flags.
type settings struct {
	rounds    int
	time      time.Duration
	peers     string
	workloads string
	benchstat string
	profiles  string
	passed    bool
	slotPeer  string
	slotOf    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "middleware:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	if s.slotOf != "" {
		return runSlot(s, out)
	}
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
	f := flag.NewFlagSet("middleware", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&s.rounds, "rounds", 6, "how often each pair is measured, 1 to 100")
	f.DurationVar(&s.time, "time", 300*time.Millisecond, "how long a measurement takes, 1ms to 3s")
	f.StringVar(&s.peers, "peers", "", "only the contenders whose name has one of these parts, with semicolons (empty: all)")
	f.StringVar(&s.workloads, "workloads", "", "only these workloads, by their short names, with commas (empty: all)")
	f.StringVar(&s.benchstat, "benchstat", "", "also write every measurement to this file, in the format that benchstat reads")
	f.StringVar(&s.profiles, "profiles", "", "also write CPU profiles into this folder, the last round's (empty: none)")
	f.BoolVar(&s.passed, "passed", false, "show the time that passes in place of processor time: on a quiet machine, with waiting for locks")
	f.StringVar(&s.slotPeer, "slot-peer", "", "used by the command itself: measure this contender here")
	f.StringVar(&s.slotOf, "slot", "", "used by the command itself: the workload to measure here")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("argument %q; accepted: flags only", f.Arg(0))
	case s.rounds < 1 || s.rounds > 100:
		return s, fmt.Errorf("-rounds is %d; accepted: 1 to 100", s.rounds)
	case s.time < time.Millisecond || s.time > maxTime:
		return s, fmt.Errorf("-time is %v; accepted: 1ms to %v", s.time, maxTime)
	}
	return s, nil
}

// runSlot measures one pair and writes a result as JSON.
func runSlot(s settings, out io.Writer) error {
	c, err := find(s.slotPeer)
	if err != nil {
		return err
	}
	w, err := findWorkload(s.slotOf)
	if err != nil {
		return err
	}
	if s.profiles != "" {
		f, err := os.Create(s.profiles)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	t, err := w.run(c, s.time)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result{Peer: c.Name, Workload: w.Slug, Timing: t})
}
