package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

// A cell is a contender under a workload, asked by so many goroutines.
type cell struct {
	contender, workload string
	goroutines          int
}

// A plan is what is measured, the engines that are up for it, and what was found.
type plan struct {
	settings
	contenders []contender
	engines    map[string]*engine
	results    map[cell][]result
	progress   io.Writer
}

func makePlan(s settings, progress io.Writer) (*plan, error) {
	p := &plan{settings: s, engines: map[string]*engine{}, results: map[cell][]result{}, progress: progress}
	for _, c := range contenders() {
		if slices.Contains(s.stores, c.engine) && selected(c.name, s.only) {
			p.contenders = append(p.contenders, c)
		}
	}
	if len(p.contenders) == 0 {
		_, err := find(s.only)
		return nil, fmt.Errorf("-stores and -only select none: %w", err)
	}
	return p, nil
}

// selected reports whether the name has one of the parts, which stand in a list with semicolons.
func selected(name, parts string) bool {
	for p := range strings.SplitSeq(parts, ";") {
		if strings.Contains(name, strings.TrimSpace(p)) {
			return true
		}
	}
	return false
}

// workloads are those of the engine: what is denied is asked of Redis only, where there are peers.
func (p *plan) workloads(engine string) []workload {
	return slices.DeleteFunc(workloads(), func(w workload) bool { return w.denied && engine != redisEngine })
}

// measure starts each engine in turn, fills it, and measures all of its cells in every round.
func (p *plan) measure(ctx context.Context) error {
	for _, name := range p.stores {
		var some []contender
		for _, c := range p.contenders {
			if c.engine == name {
				some = append(some, c)
			}
		}
		if len(some) == 0 || p.engines[name] != nil {
			continue
		}
		if err := p.measureOn(ctx, name, some); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) measureOn(ctx context.Context, name string, some []contender) error {
	fmt.Fprintf(p.progress, "starting %s\n", name)
	e, err := start(ctx, name)
	if err != nil {
		return err
	}
	p.engines[name] = e
	if err := p.fill(ctx, some); err != nil {
		return err
	}
	for round := range p.rounds {
		fmt.Fprintf(p.progress, "%s, round %d of %d\n", name, round+1, p.rounds)
		for _, w := range p.workloads(name) {
			for _, goroutines := range p.goroutines {
				for i := range some {
					c := some[(i+round)%len(some)]
					if w.denied && !c.decides {
						continue
					}
					if err := p.one(ctx, c, w, goroutines); err != nil {
						return err
					}
				}
			}
		}
	}
	e.stop()
	delete(p.engines, name)
	return nil
}

func (p *plan) one(ctx context.Context, c contender, w workload, goroutines int) error {
	r, err := p.spawn(ctx, c, slot{Workload: w.name, Goroutines: goroutines, Duration: p.duration, Profiles: p.profiles})
	if err != nil {
		return err
	}
	at := cell{c.name, w.name, goroutines}
	p.results[at] = append(p.results[at], r)
	fmt.Fprintf(p.progress, "  %s, %d: %s: %s a second, %s s of the load per million", w.name, goroutines, c.name, report.Number(rate(r)), report.Number(client(r)))
	if c.engine == redisEngine {
		fmt.Fprintf(p.progress, ", %s s of Redis", report.Number(server(r)))
	}
	fmt.Fprintf(p.progress, "; %d of %d failed\n", r.Failed, r.Requests)
	return nil
}

// fillers is how many goroutines ask for the keys that are to be there.
const fillers = 64

// fill asks for every key of the filled workloads once, in every space.
func (p *plan) fill(ctx context.Context, some []contender) error {
	done := map[string]bool{}
	for _, c := range some {
		if done[c.space] {
			continue
		}
		done[c.space] = true
		for _, w := range p.workloads(c.engine) {
			if !w.filled {
				continue
			}
			fmt.Fprintf(p.progress, "filling %s\n", c.name)
			if _, err := p.spawn(ctx, c, slot{Workload: w.name, Goroutines: fillers, Fill: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawn measures a slot in a process of its own, on the processors of the load.
func (p *plan) spawn(ctx context.Context, c contender, s slot) (result, error) {
	s.Contender, s.Address, s.Keys = c.name, p.engines[c.engine].address, p.storeKeys
	if c.engine == redisEngine {
		s.Keys = p.keys
	}
	text, err := json.Marshal(s)
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, "taskset", "-c", loadCores(), self, "-slot", string(text))
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%s, %s, %d: %w: %s", c.name, s.Workload, s.Goroutines, err, problem.Bytes())
	}
	var r result
	return r, json.Unmarshal(out.Bytes(), &r)
}

func (p *plan) stop() {
	for _, e := range p.engines {
		e.stop()
	}
}
