package main

import (
	"context"
	"fmt"
	"io"

	"github.com/weirlimit/weir/bench/report"
)

// pipelines are how many requests a connection sends before it reads a reply.
var pipelines = []int{1, 16, 64}

// A pair is a target under one pipeline.
type pair struct {
	target   string
	pipeline int
}

type measurement struct {
	settings
	targets  []target
	progress io.Writer
	requests map[pair]int
	results  map[pair][]result
}

// take starts all servers, fills them, finds how many requests to send, and measures every pair in every round.
func (m *measurement) take(ctx context.Context) error {
	m.requests, m.results = map[pair]int{}, map[pair][]result{}
	for i := range m.targets {
		if err := m.prepare(ctx, &m.targets[i]); err != nil {
			return err
		}
	}
	for round := range m.rounds {
		fmt.Fprintf(m.progress, "round %d of %d\n", round+1, m.rounds)
		for _, pipeline := range pipelines {
			for i := range m.targets {
				t := &m.targets[(i+round)%len(m.targets)]
				p := pair{t.name, pipeline}
				r, err := t.fire(ctx, m.requests[p], pipeline)
				if err != nil {
					return err
				}
				m.results[p] = append(m.results[p], r)
				fmt.Fprintf(m.progress, "  pipeline %d: %s: %s a second, %s s per million\n", pipeline, t.name, report.Number(r.perSecond), report.Number(r.cpu))
			}
		}
	}
	return nil
}

func (m *measurement) prepare(ctx context.Context, t *target) error {
	fmt.Fprintf(m.progress, "starting %s\n", t.name)
	if err := t.begin(); err != nil {
		return err
	}
	if m.fill > 0 {
		if _, err := t.fire(ctx, m.fill, 64); err != nil {
			return err
		}
	}
	for _, pipeline := range pipelines {
		n, err := t.calibrate(ctx, pipeline, m.time)
		if err != nil {
			return err
		}
		m.requests[pair{t.name, pipeline}] = n
	}
	return nil
}

func (m *measurement) stop() {
	for _, t := range m.targets {
		if t.run != nil {
			t.run.stop()
		}
	}
}
