package servers

import (
	"context"
	"fmt"
	"io"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/report"
)

// A pipeline is how many requests a connection sends before it reads a reply.
type pipeline int

// Key returns the head of its column.
func (p pipeline) Key() string { return fmt.Sprintf("pipeline %d", p) }

var pipelines = []pipeline{1, 16, 64}

// A pair is a target under one pipeline.
type pair struct {
	target   string
	pipeline pipeline
}

type measurement struct {
	harness.Settings
	targets  []*target
	progress io.Writer
	requests map[pair]int
	results  map[pair][]result
}

// take starts all servers, fills them, finds how many requests to send, and measures every pair in every round.
func (m *measurement) take(ctx context.Context) error {
	m.requests, m.results = map[pair]int{}, map[pair][]result{}
	for _, t := range m.targets {
		if err := m.prepare(ctx, t); err != nil {
			return err
		}
	}
	return harness.Rounds(m.Rounds, m.progress, pipelines, m.targets, func(line pipeline, t *target) error {
		p := pair{t.name, line}
		r, err := t.fire(ctx, m.requests[p], int(line))
		m.results[p] = append(m.results[p], r)
		fmt.Fprintf(m.progress, "  %s: %s: %s a second, %s s per million\n", line.Key(), t.name, report.Number(r.perSecond), report.Number(r.cpu))
		return err
	})
}

func (m *measurement) prepare(ctx context.Context, t *target) error {
	fmt.Fprintf(m.progress, "starting %s\n", t.name)
	if err := t.begin(ctx); err != nil {
		return err
	}
	if m.Fill > 0 {
		if _, err := t.fire(ctx, m.Fill, 64); err != nil {
			return err
		}
	}
	for _, line := range pipelines {
		n, err := t.calibrate(ctx, int(line), m.Time)
		if err != nil {
			return err
		}
		m.requests[pair{t.name, line}] = n
	}
	return nil
}

func (m *measurement) stop() {
	for _, t := range m.targets {
		if t.run != nil {
			t.run.Stop()
		}
	}
}
