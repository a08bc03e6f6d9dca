package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
	"github.com/weirlimit/weir/bench/report"
)

// nanoseconds returns what each round measured, in the order of the rounds.
func nanoseconds(results []result, name, workload string) []float64 {
	var v []float64
	for _, r := range results {
		if r.Peer == name && r.Workload == workload {
			v = append(v, r.Timing.Nanoseconds)
		}
	}
	return v
}

func (p plan) print(out io.Writer, results []result) error {
	fmt.Fprintf(out, "%s, %s/%s, %d cores; medians of %d rounds of %v.\n%s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), p.rounds, p.time, versions(p.peerList))
	for _, section := range []struct {
		title string
		table *report.Table
	}{
		{"Nanoseconds per decision, and what it costs in memory:", p.times(results)},
		{"Times as long as weir (median of the rounds' ratios; above 1: weir is faster):", p.ratios(results)},
		{"weir beside the fastest peer that keeps keys apart and decides, and beside the bare table:", p.summary(results)},
	} {
		if len(section.table.Rows) == 0 {
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

func (p plan) heads(first string, more ...string) []string {
	h := []string{first}
	for _, w := range p.workloadList {
		h = append(h, w.Name)
	}
	return append(h, more...)
}

func (p plan) times(results []result) *report.Table {
	t := &report.Table{Head: p.heads("ns", "bytes/key", "with its text", "allocs", "bytes/op")}
	for _, each := range p.peerList {
		row := []string{each.Name}
		for _, w := range p.workloadList {
			row = append(row, report.Number(report.Median(nanoseconds(results, each.Name, w.Slug))))
		}
		heap := load.Heap{PerKey: math.NaN(), WithText: math.NaN()}
		var allocs, bytes []float64
		for _, r := range results {
			switch {
			case r.Peer != each.Name:
			case r.Workload == memory:
				heap = r.Heap
			default:
				allocs, bytes = append(allocs, r.Timing.Allocs), append(bytes, r.Timing.Bytes)
			}
		}
		t.Add(append(row, report.Number(heap.PerKey), report.Number(heap.WithText),
			report.Number(report.Median(allocs)), report.Number(report.Median(bytes)))...)
	}
	return t
}

func (p plan) ratios(results []result) *report.Table {
	t := &report.Table{Head: p.heads("× weir")}
	for _, each := range p.peerList {
		row := []string{each.Name}
		for _, w := range p.workloadList {
			row = append(row, report.Number(report.Ratio(nanoseconds(results, each.Name, w.Slug), nanoseconds(results, peer.Weir, w.Slug))))
		}
		t.Add(row...)
	}
	return t
}

func (p plan) summary(results []result) *report.Table {
	t := &report.Table{Head: []string{"", "fastest peer", "its ns", "weir ns", "times as fast", "aim", "weir / bare table", "aim", "single / batch"}}
	for _, w := range p.workloadList {
		ours := nanoseconds(results, peer.Weir, w.Slug)
		best, ratio := "", math.Inf(1)
		for _, each := range p.peerList {
			if r := report.Ratio(nanoseconds(results, each.Name, w.Slug), ours); each.Kind == peer.Rival && r < ratio {
				best, ratio = each.Name, r
			}
		}
		if best == "" || len(ours) == 0 {
			continue
		}
		t.Add(w.Name, best, report.Number(report.Median(nanoseconds(results, best, w.Slug))), report.Number(report.Median(ours)),
			report.Number(ratio), aims[w.Slug],
			report.Number(report.Ratio(ours, nanoseconds(results, peer.Bare, w.Slug))), "≤ 1.3",
			report.Number(report.Ratio(ours, nanoseconds(results, peer.WeirBatch, w.Slug))))
	}
	return t
}

// aims are how many times as fast as the fastest peer weir means to be.
var aims = map[string]string{"hot": "2", "hot-cores": "1.4", "uniform": "3", "zipf-cores": "3.5", "denied": "2", "denied-cores": "–"}

// misbehaved lists the pairs that didn't admit all, or deny all, as the workload wants.
func (p plan) misbehaved(results []result) []string {
	var lines []string
	for _, w := range p.workloadList {
		for _, each := range p.peerList {
			var requests, admitted int64
			for _, r := range results {
				if r.Peer == each.Name && r.Workload == w.Slug {
					requests, admitted = requests+r.Timing.Requests, admitted+r.Timing.Admitted
				}
			}
			want := requests
			if w.Denied {
				want = 0
			}
			if admitted != want {
				lines = append(lines, fmt.Sprintf("%s, %s: admitted %d of %d, should have been %d", each.Name, w.Name, admitted, requests, want))
			}
		}
	}
	return lines
}

// versions names the version of every peer's module in this build.
func versions(peers []peer.Peer) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var v []string
	for _, d := range info.Deps {
		for _, p := range peers {
			if p.Module == d.Path {
				v = append(v, d.Path+" "+d.Version)
				break
			}
		}
	}
	return strings.Join(v, ", ")
}
