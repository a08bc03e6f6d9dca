package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

// values returns a figure of each round, in the order of the rounds.
func values(results []result, name, slug string, of func(timing) float64) []float64 {
	var v []float64
	for _, r := range results {
		if r.Peer == name && r.Workload == slug {
			v = append(v, of(r.Timing))
		}
	}
	return v
}

// passed is the time that passes for one request.
func passed(t timing) float64  { return t.Nanoseconds }
func allocs(t timing) float64  { return t.Allocs }
func bytesOf(t timing) float64 { return t.Bytes }

// cpu is the processor time of one request: other work on the machine changes it less than the time that passes.
func cpu(t timing) float64 { return t.Processor }

// figure is what the tables show of a request: see settings.passed.
func (p plan) figure() func(timing) float64 {
	if p.passed {
		return passed
	}
	return cpu
}

// added returns what a contender adds to the bare handler, each round's by that round's.
func added(results []result, name string, w workload, of func(timing) float64) []float64 {
	v, bare := values(results, name, w.Slug, of), values(results, bareName, w.Twin, of)
	n := min(len(v), len(bare))
	sum := make([]float64, n)
	for i := range sum {
		sum[i] = v[i] - bare[i]
	}
	return sum
}

func (p plan) print(out io.Writer, results []result) error {
	fmt.Fprintf(out, "%s, %s/%s, %d cores; medians of %d rounds of %v.\n%s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), p.rounds, p.time, versions(p.contenders))
	told, err := p.told()
	if err != nil {
		return err
	}
	admitted, denied := p.some(func(w workload) bool { return !w.Server && !w.denied() }), p.some(workload.denied)
	for _, section := range []struct {
		title string
		table *report.Table
	}{
		{fmt.Sprintf("Nanoseconds%s that the middleware adds to a request that passes, and what it allocates:", map[bool]string{false: " of processor time"}[p.passed]), admitted.times(results)},
		{"To one that is denied (over the bare handler's that passes):", denied.times(results)},
		{"What is added, times that of weir (median of the rounds' ratios; above 1: weir adds less):", p.some(func(w workload) bool { return !w.Server }).ratios(results)},
		{"Over loopback, server and clients in one process:", p.some(func(w workload) bool { return w.Server }).served(results)},
		{"What clients are told:", told},
	} {
		if len(section.table.Rows) == 0 || len(section.table.Head) == 1 {
			continue
		}
		fmt.Fprintln(out, section.title)
		fmt.Fprintln(out)
		if err := section.table.Write(out); err != nil {
			return err
		}
	}
	for _, line := range p.misbehaved(results) {
		fmt.Fprintln(out, "-", line)
	}
	return nil
}

// some is the plan with those of its workloads alone that want is true of.
func (p plan) some(want func(workload) bool) plan {
	all := p.workloads
	p.workloads = nil
	for _, w := range all {
		if want(w) {
			p.workloads = append(p.workloads, w)
		}
	}
	return p
}

func (p plan) heads(first string, more ...string) []string {
	h := []string{first}
	for _, w := range p.workloads {
		h = append(h, strings.TrimSuffix(w.Name, ", denied"))
	}
	return append(h, more...)
}

// rows adds a row of each contender that has figures; the cells of a workload are those that f returns.
func (p plan) rows(t *report.Table, results []result, f func(contender, workload) string, more func(contender) []string) {
	for _, c := range p.contenders {
		row, found := []string{c.Name}, false
		for _, w := range p.workloads {
			row = append(row, f(c, w))
			found = found || len(values(results, c.Name, w.Slug, p.figure())) > 0
		}
		if found {
			t.Add(append(row, more(c)...)...)
		}
	}
}

func (p plan) times(results []result) *report.Table {
	t := &report.Table{Head: p.heads("ns", "allocs", "bytes")}
	if len(p.workloads) == 0 {
		return t
	}
	p.rows(t, results, func(c contender, w workload) string {
		if c.Name == bareName {
			return "(" + report.Number(report.Median(values(results, c.Name, w.Slug, p.figure()))) + ")"
		}
		return report.Number(report.Median(added(results, c.Name, w, p.figure())))
	}, func(c contender) []string {
		var a, b []float64
		for _, w := range p.workloads {
			a, b = append(a, values(results, c.Name, w.Slug, allocs)...), append(b, values(results, c.Name, w.Slug, bytesOf)...)
		}
		return []string{report.Number(report.Median(a)), report.Number(report.Median(b))}
	})
	return t
}

func (p plan) ratios(results []result) *report.Table {
	t := &report.Table{Head: []string{"× weir"}}
	for _, w := range p.workloads {
		t.Head = append(t.Head, w.Name)
	}
	for _, c := range p.contenders {
		if c.Name == bareName {
			continue
		}
		row := []string{c.Name}
		for _, w := range p.workloads {
			row = append(row, report.Number(report.Ratio(added(results, c.Name, w, p.figure()), added(results, weirName, w, p.figure()))))
		}
		t.Add(row...)
	}
	return t
}

// served is of the workloads through a server, of which there is one.
func (p plan) served(results []result) *report.Table {
	t := &report.Table{Head: []string{"", "requests a second", "processor time, µs", "added, µs", "allocs", "bytes"}}
	for _, w := range p.workloads {
		for _, c := range p.contenders {
			median := func(of func(timing) float64) float64 { return report.Median(values(results, c.Name, w.Slug, of)) }
			if math.IsNaN(median(cpu)) {
				continue
			}
			t.Add(c.Name, report.Number(1e9/median(passed)), report.Number(median(cpu)/1e3),
				report.Number(report.Median(added(results, c.Name, w, cpu))/1e3), report.Number(median(allocs)), report.Number(median(bytesOf)))
		}
	}
	return t
}

// misbehaved lists the pairs that didn't admit all, or deny all, as the workload wants.
func (p plan) misbehaved(results []result) []string {
	var lines []string
	for _, w := range p.workloads {
		for _, c := range p.contenders {
			var sum timing
			for _, r := range results {
				if r.Peer == c.Name && r.Workload == w.Slug {
					sum.add(r.Timing)
				}
			}
			got, verb := sum.Admitted, "admitted"
			if w.denied() {
				got, verb = sum.Denied, "denied"
			}
			if got != sum.Requests {
				lines = append(lines, fmt.Sprintf("%s, %s: %s %d of %d, should have been all", c.Name, w.Name, verb, got, sum.Requests))
			}
		}
	}
	return lines
}

// versions names the version of every contender's module in this build.
func versions(contenders []contender) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var v []string
	for _, d := range info.Deps {
		for _, c := range contenders {
			if c.Module == d.Path {
				v = append(v, d.Path+" "+d.Version)
				break
			}
		}
	}
	return strings.Join(v, ", ")
}
