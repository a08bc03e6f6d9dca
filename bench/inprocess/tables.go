package inprocess

import (
	"io"
	"math"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/load"
	"github.com/weirlimit/weir/bench/peer"
	"github.com/weirlimit/weir/bench/report"
)

func (p plan) nanoseconds(name string, w load.Workload) []float64 {
	return p.results.Values(name, w.Slug, harness.WallTime)
}

func (p plan) print(out io.Writer) error {
	var modules, faults []string
	for _, each := range p.peers {
		modules = append(modules, each.Module)
		for _, w := range p.workloads {
			faults = append(faults, p.results.Fault(each.Name, w.Slug, w.Name, w.Denied))
		}
	}
	p.WriteHeader(out, "", harness.Versions(modules...))
	return harness.WriteSections(out, faults,
		harness.Section{Title: "Nanoseconds per decision, and what it costs in memory:", Table: p.times()},
		harness.Section{Title: "Times as long as weir (median of the rounds' ratios; above 1: weir is faster):", Table: p.ratios()},
		harness.Section{Title: "weir beside the fastest peer that keeps keys apart and decides, and beside the bare table:", Table: p.summary()})
}

func name(w load.Workload) string { return w.Name }

func (p plan) times() *report.Table {
	t := harness.Grid("ns", p.peers, p.workloads, name, func(each peer.Peer, w load.Workload) string {
		return harness.Median(p.nanoseconds(each.Name, w))
	})
	t.Head = append(t.Head, "bytes/key", "with its text", "allocs", "bytes/op")
	for i, each := range p.peers {
		heap := [2]float64{math.NaN(), math.NaN()}
		var allocs, bytes []float64
		for _, r := range p.results {
			switch {
			case r.Contender != each.Name:
			case r.Workload == memory:
				heap = r.Heap
			default:
				allocs, bytes = append(allocs, r.Timing.Allocs), append(bytes, r.Timing.Bytes)
			}
		}
		t.Rows[i] = append(t.Rows[i], report.Number(heap[0]), report.Number(heap[1]), harness.Median(allocs), harness.Median(bytes))
	}
	return t
}

func (p plan) ratios() *report.Table {
	return harness.Grid("× weir", p.peers, p.workloads, name, func(each peer.Peer, w load.Workload) string {
		return report.Number(report.Ratio(p.nanoseconds(each.Name, w), p.nanoseconds(peer.Weir, w)))
	})
}

func (p plan) summary() *report.Table {
	t := &report.Table{Head: []string{"", "fastest peer", "its ns", "weir ns", "times as fast", "aim", "weir / bare table", "aim", "single / batch"}}
	for _, w := range p.workloads {
		ours := p.nanoseconds(peer.Weir, w)
		best, ratio := "", math.Inf(1)
		for _, each := range p.peers {
			if r := report.Ratio(p.nanoseconds(each.Name, w), ours); each.Kind == peer.Rival && r < ratio {
				best, ratio = each.Name, r
			}
		}
		if best == "" || len(ours) == 0 {
			continue
		}
		t.Add(w.Name, best, harness.Median(p.nanoseconds(best, w)), harness.Median(ours), report.Number(ratio), aims[w.Slug],
			report.Number(report.Ratio(ours, p.nanoseconds(peer.Bare, w))), "≤ 1.3", report.Number(report.Ratio(ours, p.nanoseconds(peer.WeirBatch, w))))
	}
	return t
}

// aims are how many times as fast as the fastest peer weir means to be.
var aims = map[string]string{"hot": "2", "hot-cores": "1.4", "uniform": "3", "zipf-cores": "3.5", "denied": "2", "denied-cores": "–"}
