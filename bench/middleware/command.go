// Package middleware times what each rate limiting middleware adds to a handler of net/http. See
// ../README.md.
package middleware

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weirlimit/weir/bench/harness"
)

// Command is the subcommand.
var Command = harness.Command{
	Name: "middleware", Short: "weir's middleware for net/http beside that of others; about 7 minutes",
	Rounds: 6, Time: 300 * time.Millisecond, Least: time.Millisecond, Most: maxTime,
	Flags: []string{"workloads", "benchstat", "profiles", "passed"},
	Run:   run, Measure: measure,
}

// A plan is a selection of pairs, and their results.
type plan struct {
	harness.Settings
	contenders []contender
	workloads  []workload
	results    harness.Results
}

func newPlan(s harness.Settings) (p plan, err error) {
	p.Settings = s
	if p.contenders, err = harness.Contenders(s, contenders()); err == nil {
		p.workloads, err = harness.Workloads(s, workloads())
	}
	return p, err
}

func run(ctx context.Context, s harness.Settings, out, progress io.Writer) error {
	p, err := newPlan(s)
	if err != nil {
		return err
	}
	err = harness.Rounds(p.Rounds, progress, p.workloads, p.contenders, func(w workload, c contender) error {
		if w.denied() && c.Open {
			return nil
		}
		fmt.Fprintf(progress, "  %s: %s\n", w.Slug, c.Name)
		var r harness.Result
		err := harness.Spawn(ctx, s.Command, s.Slot(c.Name, w.Slug), &r)
		p.results = append(p.results, r)
		return err
	})
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
	c, err := harness.Find("contender", s.Contender, contenders())
	if err != nil {
		return nil, err
	}
	w, err := harness.Find("workload", s.Workload, workloads())
	if err != nil {
		return nil, err
	}
	stop, err := s.StartProfile()
	if err != nil {
		return nil, err
	}
	defer stop()
	t, err := w.run(c, s.Time)
	return harness.Result{Contender: c.Name, Workload: w.Slug, Timing: t}, err
}
