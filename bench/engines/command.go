// Package engines measures weir over shared engines: over Redis beside two other Go limiters, and
// over PostgreSQL and memcached. Engines have one processor, the load the others. See ../README.md.
package engines

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/report"
)

// Command is the subcommand.
var Command = harness.Command{
	Name: "engines", Short: "weir over Redis beside other Go limiters; about 15 minutes; needs redis-server, taskset",
	Rounds: 5, Time: 2 * time.Second, Least: 10 * time.Millisecond, Most: time.Minute,
	Flags: []string{"workloads", "profiles", "keys", "store-keys", "stores", "goroutines"},
	Run:   run, Measure: measure,
}

// A cell is a contender under a workload, with so many goroutines.
type cell struct {
	contender, workload string
	goroutines          int
}

// A plan is a selection of pairs, the engine that is up for them, and their results.
type plan struct {
	harness.Settings
	contenders []contender
	chosen     []workload
	engine     *engine
	results    map[cell][]result
	progress   io.Writer
}

func newPlan(s harness.Settings, progress io.Writer) (p *plan, err error) {
	p = &plan{Settings: s, results: map[cell][]result{}, progress: progress}
	for _, name := range s.Stores {
		if !slices.Contains(engineNames, name) {
			return nil, fmt.Errorf("-stores has %q; accepted: %q", name, engineNames)
		}
	}
	if p.chosen, err = harness.Workloads(s, workloads()); err == nil {
		p.contenders, err = harness.Contenders(s, slices.DeleteFunc(contenders(), func(c contender) bool { return !slices.Contains(s.Stores, c.engine) }))
	}
	return p, err
}

func run(ctx context.Context, s harness.Settings, out, progress io.Writer) error {
	p, err := newPlan(s, progress)
	if err != nil {
		return err
	}
	for _, name := range engineNames {
		if err := p.measureOn(ctx, name); err != nil {
			return err
		}
	}
	return p.print(out)
}

// workloads returns the workloads of an engine: denials only for Redis, where there are peers.
func (p *plan) workloads(engine string) []workload {
	return slices.DeleteFunc(slices.Clone(p.chosen), func(w workload) bool { return w.denied && engine != redisEngine })
}

// A pressure is a workload with so many goroutines.
type pressure struct {
	workload
	goroutines int
}

// measureOn starts an engine, fills it, and measures its cells in every round.
func (p *plan) measureOn(ctx context.Context, name string) error {
	some := p.on(name)
	if len(some) == 0 {
		return nil
	}
	fmt.Fprintf(p.progress, "starting %s\n", name)
	var err error
	if p.engine, err = start(ctx, name); err != nil {
		return err
	}
	defer p.engine.stop()
	if err := p.fill(ctx, some); err != nil {
		return err
	}
	var all []pressure
	for _, w := range p.workloads(name) {
		for _, n := range p.Goroutines {
			all = append(all, pressure{w, n})
		}
	}
	return harness.Rounds(p.Rounds, p.progress, all, some, func(l pressure, c contender) error {
		if l.denied && !c.decides {
			return nil
		}
		return p.one(ctx, c, l)
	})
}

func (p *plan) one(ctx context.Context, c contender, l pressure) error {
	slot := p.Slot(c.name, l.Slug, strconv.Itoa(l.goroutines))
	slot.Goroutines = l.goroutines
	r, err := p.spawn(ctx, c, slot)
	if err != nil {
		return err
	}
	at := cell{c.name, l.Slug, l.goroutines}
	p.results[at] = append(p.results[at], r)
	fmt.Fprintf(p.progress, "  %s, %d: %s: %s a second, %s s of the load per million", l.Name, l.goroutines, c.name, report.Number(rate(r)), report.Number(client(r)))
	if c.engine == redisEngine {
		fmt.Fprintf(p.progress, ", %s s of Redis", report.Number(server(r)))
	}
	fmt.Fprintf(p.progress, "; %d of %d failed\n", r.Failed, r.Requests)
	return nil
}

// fillers is the number of goroutines that send requests for the keys to be there.
const fillers = 64

// fill sends a request for every key of the filled workloads, in every space.
func (p *plan) fill(ctx context.Context, some []contender) error {
	done := map[string]bool{}
	for _, c := range some {
		for _, w := range p.workloads(c.engine) {
			if !w.filled || done[c.space] {
				continue
			}
			done[c.space] = true
			fmt.Fprintf(p.progress, "filling %s\n", c.name)
			if _, err := p.spawn(ctx, c, harness.Slot{Contender: c.name, Workload: w.Slug, Goroutines: fillers, Fill: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawn measures a slot on the processors of the load.
func (p *plan) spawn(ctx context.Context, c contender, s harness.Slot) (r result, err error) {
	s.Address, s.Keys = p.engine.address, p.StoreKeys
	if c.engine == redisEngine {
		s.Keys = p.Keys
	}
	return r, harness.Spawn(ctx, p.Command, s, &r, "taskset", "-c", loadCores())
}
