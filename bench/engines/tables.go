package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

func rate(r result) float64   { return r.decided() / r.Seconds }
func server(r result) float64 { return r.Server / r.decided() * 1e6 }
func client(r result) float64 { return r.Client / r.decided() * 1e6 }

// each returns one figure of every round.
func (p *plan) each(at cell, figure func(result) float64) []float64 {
	var v []float64
	for _, r := range p.results[at] {
		v = append(v, figure(r))
	}
	return v
}

func (p *plan) median(at cell, figure func(result) float64) float64 {
	return report.Median(p.each(at, figure))
}

// sum adds a figure over all rounds.
func (p *plan) sum(at cell, figure func(result) float64) float64 {
	var n float64
	for _, x := range p.each(at, figure) {
		n += x
	}
	return n
}

func (p *plan) print(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s/%s, %d cores; medians of %d rounds of %v; %d keys on Redis, %d elsewhere.\n%s\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.rounds, p.duration, p.keys, p.storeKeys, versions())
	for _, print := range []func(io.Writer) error{p.printRedis, p.printStores} {
		if err := print(out); err != nil {
			return err
		}
	}
	return p.remarks(out)
}

// versions lists what stands behind the rows.
func versions() string {
	var v []string
	b, _ := debug.ReadBuildInfo()
	for _, m := range b.Deps {
		for _, part := range []string{"redis_rate", "throttled/throttled", "redis/go-redis/", "redis/rueidis", "jackc/pgx/", "bradfitz/gomemcache"} {
			if strings.Contains(m.Path, part) {
				v = append(v, m.Path+" "+m.Version)
			}
		}
	}
	return strings.Join(v, ", ")
}

// on returns the contenders of the engines that are measured.
func (p *plan) on(engines ...string) []contender {
	return slices.DeleteFunc(slices.Clone(p.contenders), func(c contender) bool { return !slices.Contains(engines, c.engine) })
}

func (p *plan) printRedis(out io.Writer) error {
	some := p.on(redisEngine)
	if len(some) == 0 {
		return nil
	}
	for _, w := range p.workloads(redisEngine) {
		if err := p.write(out, "Redis, "+w.name+": decisions a second · p50 µs · p99 µs:", some, w, p.speed); err != nil {
			return err
		}
	}
	for _, w := range p.workloads(redisEngine) {
		if err := p.write(out, "Redis, "+w.name+": processor seconds of Redis · of the load, per million decisions:", some, w, p.cost); err != nil {
			return err
		}
	}
	for _, w := range p.workloads(redisEngine) {
		if err := p.write(out, "Redis, "+w.name+": commands sent · carried out, per decision:", some, w, p.commands); err != nil {
			return err
		}
	}
	return p.printRatios(out)
}

func (p *plan) printStores(out io.Writer) error {
	some := p.on(postgresEngine, memcachedEngine)
	if len(some) == 0 {
		return nil
	}
	for _, w := range p.workloads(postgresEngine) {
		if err := p.write(out, "weir over other engines, "+w.name+": decisions a second · p50 µs · p99 µs:", some, w, p.speed); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) speed(_ contender, at cell) string {
	return fmt.Sprintf("%s · %s · %s", report.Number(p.median(at, rate)),
		report.Number(p.median(at, func(r result) float64 { return r.Median })), report.Number(p.median(at, func(r result) float64 { return r.Late })))
}

func (p *plan) cost(_ contender, at cell) string {
	return report.Number(p.median(at, server)) + " · " + report.Number(p.median(at, client))
}

func (p *plan) commands(c contender, at cell) string {
	decided := p.sum(at, result.decided)
	return fmt.Sprintf("%.3f · %.3f", p.sum(at, func(r result) float64 { return c.sent(r.Calls) })/decided,
		p.sum(at, func(r result) float64 { return carriedOut(r.Calls) })/decided)
}

// write writes one workload's table, a row for each contender and a column for each number of goroutines.
func (p *plan) write(out io.Writer, title string, some []contender, w workload, text func(contender, cell) string) error {
	fmt.Fprintf(out, "%s\n\n", title)
	t := &report.Table{Head: []string{""}}
	for _, n := range p.goroutines {
		t.Head = append(t.Head, plural(n))
	}
	for _, c := range some {
		row := []string{c.name}
		for _, n := range p.goroutines {
			at := cell{c.name, w.name, n}
			if len(p.results[at]) == 0 {
				row = append(row, "–")
				continue
			}
			row = append(row, text(c, at))
		}
		t.Add(row...)
	}
	return t.Write(out)
}

// best returns the peer of the kinds that decides most in a second, and false if there is none.
func (p *plan) best(w workload, goroutines int, kinds ...kind) (cell, bool) {
	top, most := cell{}, math.Inf(-1)
	for _, c := range p.on(redisEngine) {
		at := cell{c.name, w.name, goroutines}
		if r := p.median(at, rate); slices.Contains(kinds, c.kind) && r > most {
			top, most = at, r
		}
	}
	return top, top.contender != ""
}

func (p *plan) printRatios(out io.Writer) error {
	if !slices.ContainsFunc(p.contenders, func(c contender) bool { return c.name == weirRedis }) {
		return nil
	}
	fmt.Fprint(out, "weir over Redis beside the best peer as its documentation shows it, and the best of all peers (medians of the rounds' ratios; above 1: weir is faster, or makes Redis work less):\n\n")
	t := &report.Table{Head: []string{"", "weir", "best peer as documented", "its decisions", "times as fast", "Redis' time, its / weir's", "best of all peers", "its decisions", "times as fast", "Redis' time, its / weir's"}}
	for _, w := range p.workloads(redisEngine) {
		for _, n := range p.goroutines {
			row := []string{fmt.Sprintf("%s, %d", w.name, n), report.Number(p.median(cell{weirRedis, w.name, n}, rate))}
			row = append(row, p.beside(w, n, documented)...)
			row = append(row, p.beside(w, n, documented, tuned)...)
			t.Add(row...)
		}
	}
	return t.Write(out)
}

// beside returns the cells that compare weir with the best peer of the kinds.
func (p *plan) beside(w workload, goroutines int, kinds ...kind) []string {
	peer, ok := p.best(w, goroutines, kinds...)
	if !ok {
		return []string{"–", "–", "–", "–"}
	}
	own := cell{weirRedis, w.name, goroutines}
	return []string{
		peer.contender, report.Number(p.median(peer, rate)), report.Number(report.Ratio(p.each(own, rate), p.each(peer, rate))),
		report.Number(report.Ratio(p.each(peer, server), p.each(own, server))),
	}
}

// remarks writes a line for each cell that did not do as it should, after which the figures are to be read with care.
func (p *plan) remarks(out io.Writer) error {
	for _, c := range p.contenders {
		for _, w := range p.workloads(c.engine) {
			for _, n := range p.goroutines {
				for _, text := range p.faults(c, w, cell{c.name, w.name, n}) {
					if _, err := fmt.Fprintf(out, "- %s, %s, %s: %s\n", c.name, w.name, plural(n), text); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func (p *plan) faults(c contender, w workload, at cell) []string {
	var all []string
	decided, failed := p.sum(at, result.decided), p.sum(at, func(r result) float64 { return float64(r.Failed) })
	admitted, want := p.sum(at, func(r result) float64 { return float64(r.Admitted) }), decided
	if w.denied {
		want = 0
	}
	if admitted != want {
		all = append(all, fmt.Sprintf("admitted %.0f of %.0f, should have been %.0f", admitted, decided, want))
	}
	if failed > 0 {
		var problem string
		for _, r := range p.results[at] {
			problem = max(problem, r.Problem) // any one
		}
		all = append(all, fmt.Sprintf("%.0f of %.0f requests (%.1f %%) ended in an error, and are not counted as decisions: %s", failed, failed+decided, 100*failed/(failed+decided), problem))
	}
	if sent := p.sum(at, func(r result) float64 { return float64(r.Calls["evalsha"]) }); c.name == weirRedis && sent != failed+decided {
		all = append(all, fmt.Sprintf("sent %.0f EVALSHA for %.0f requests, should have been as many", sent, failed+decided))
	}
	return all
}

func plural(goroutines int) string {
	if goroutines == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", goroutines)
}
