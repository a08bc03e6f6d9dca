package middleware

import (
	"io"
	"math"
	"slices"
	"strings"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/report"
)

type figure = func(harness.Timing) float64

// shown is the figure of the tables: see harness.Settings.Wall.
func (p plan) shown() figure {
	if p.Wall {
		return harness.WallTime
	}
	return harness.CPUTime
}

// added returns what a contender adds to the bare handler, each round's by that round's.
func (p plan) added(name string, w workload, of figure) []float64 {
	v, bare := p.results.Values(name, w.Slug, of), p.results.Values(bareName, w.Twin, of)
	sum := make([]float64, min(len(v), len(bare)))
	for i := range sum {
		sum[i] = v[i] - bare[i]
	}
	return sum
}

func (p plan) print(out io.Writer) error {
	var modules, faults []string
	for _, c := range p.contenders {
		modules = append(modules, c.Module)
		for _, w := range p.workloads {
			faults = append(faults, p.results.Fault(c.Name, w.Slug, w.Name, w.denied()))
		}
	}
	fields, err := p.fields()
	if err != nil {
		return err
	}
	kind := " of processor time"
	if p.Wall {
		kind = ""
	}
	admitted := p.some(func(w workload) bool { return !w.Server && !w.denied() })
	p.WriteHeader(out, "", harness.Versions(modules...))
	return harness.WriteSections(out, faults,
		harness.Section{Title: "Nanoseconds" + kind + " that the middleware adds to a request that passes, and what it allocates:", Table: admitted.times()},
		harness.Section{Title: "To one that is denied (over the bare handler's that passes):", Table: p.some(workload.denied).times()},
		harness.Section{
			Title: "What is added, times that of weir (median of the rounds' ratios; above 1: weir adds less):",
			Table: p.some(func(w workload) bool { return !w.Server }).ratios(),
		},
		harness.Section{Title: "Over loopback, server and clients in one process:", Table: p.some(func(w workload) bool { return w.Server }).served()},
		harness.Section{Title: "What clients receive:", Table: fields})
}

// some returns the plan with the workloads alone that want is true of.
func (p plan) some(want func(workload) bool) plan {
	p.workloads = slices.DeleteFunc(slices.Clone(p.workloads), func(w workload) bool { return !want(w) })
	return p
}

// with returns the plan with the contenders alone that have results in its workloads.
func (p plan) with() plan {
	p.contenders = slices.DeleteFunc(slices.Clone(p.contenders), func(c contender) bool {
		return !slices.ContainsFunc(p.workloads, func(w workload) bool { return len(p.results.Values(c.Name, w.Slug, p.shown())) > 0 })
	})
	return p
}

func (p plan) times() *report.Table {
	p = p.with()
	t := harness.Grid("ns", p.contenders, p.workloads, func(w workload) string { return strings.TrimSuffix(w.Name, ", denied") }, func(c contender, w workload) string {
		if c.Name == bareName {
			return "(" + harness.Median(p.results.Values(c.Name, w.Slug, p.shown())) + ")"
		}
		return harness.Median(p.added(c.Name, w, p.shown()))
	})
	t.Head = append(t.Head, "allocs", "bytes")
	for i, c := range p.contenders {
		var a, b []float64
		for _, w := range p.workloads {
			a, b = append(a, p.results.Values(c.Name, w.Slug, harness.Allocs)...), append(b, p.results.Values(c.Name, w.Slug, harness.Bytes)...)
		}
		t.Rows[i] = append(t.Rows[i], harness.Median(a), harness.Median(b))
	}
	return t
}

func (p plan) ratios() *report.Table {
	p.contenders = slices.DeleteFunc(slices.Clone(p.contenders), func(c contender) bool { return c.Name == bareName || len(p.workloads) == 0 })
	return harness.Grid("× weir", p.contenders, p.workloads, func(w workload) string { return w.Name }, func(c contender, w workload) string {
		return report.Number(report.Ratio(p.added(c.Name, w, p.shown()), p.added(weirName, w, p.shown())))
	})
}

// served is of the workloads through a server, of which there is one.
func (p plan) served() *report.Table {
	t := &report.Table{Head: []string{"", "requests a second", "processor time, µs", "added, µs", "allocs", "bytes"}}
	for _, w := range p.workloads {
		for _, c := range p.contenders {
			median := func(of figure) float64 { return report.Median(p.results.Values(c.Name, w.Slug, of)) }
			if math.IsNaN(median(harness.CPUTime)) {
				continue
			}
			t.Add(c.Name, report.Number(1e9/median(harness.WallTime)), report.Number(median(harness.CPUTime)/1e3),
				report.Number(report.Median(p.added(c.Name, w, harness.CPUTime))/1e3), report.Number(median(harness.Allocs)), report.Number(median(harness.Bytes)))
		}
	}
	return t
}
