package engines

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/weirlimit/weir/bench/harness"
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

func (p *plan) number(at cell, figure func(result) float64) string {
	return report.Number(p.median(at, figure))
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
	p.WriteHeader(out, fmt.Sprintf("; %d keys on Redis, %d elsewhere", p.Keys, p.StoreKeys),
		harness.Versions("redis_rate", "throttled/throttled", "redis/go-redis/", "redis/rueidis", "jackc/pgx/", "bradfitz/gomemcache"))
	redis, others := p.workloads(redisEngine), p.workloads(postgresEngine)
	sections := p.sections("Redis, %s: decisions a second · p50 µs · p99 µs:", p.on(redisEngine), redis, p.speed)
	sections = append(sections, p.sections("Redis, %s: processor seconds of Redis · of the load, per million decisions:", p.on(redisEngine), redis, p.cost)...)
	sections = append(sections, p.sections("Redis, %s: commands sent · carried out, per decision:", p.on(redisEngine), redis, p.commands)...)
	sections = append(sections, harness.Section{
		Title: "weir over Redis beside the best peer as its documentation shows it, and the best of all peers (medians of the rounds' ratios; above 1: weir is faster, or makes Redis work less):",
		Table: p.ratios(redis),
	})
	sections = append(sections, p.sections("weir over other engines, %s: decisions a second · p50 µs · p99 µs:", p.on(postgresEngine, memcachedEngine), others, p.speed)...)
	return harness.WriteSections(out, p.remarks(), sections...)
}

// on returns the contenders of the engines that are measured.
func (p *plan) on(engines ...string) []contender {
	return slices.DeleteFunc(slices.Clone(p.contenders), func(c contender) bool { return !slices.Contains(engines, c.engine) })
}

func (p *plan) speed(_ contender, at cell) string {
	return p.number(at, rate) + " · " + p.number(at, func(r result) float64 { return r.Median }) + " · " + p.number(at, func(r result) float64 { return r.Late })
}

func (p *plan) cost(_ contender, at cell) string {
	return p.number(at, server) + " · " + p.number(at, client)
}

func (p *plan) commands(c contender, at cell) string {
	decided := p.sum(at, result.decided)
	return fmt.Sprintf("%.3f · %.3f", p.sum(at, func(r result) float64 { return c.sent(r.Calls) })/decided,
		p.sum(at, func(r result) float64 { return carriedOut(r.Calls) })/decided)
}

// sections returns a table for each workload, with a row for each contender and a column for each
// number of goroutines.
func (p *plan) sections(title string, some []contender, all []workload, text func(contender, cell) string) (sections []harness.Section) {
	for _, w := range all {
		var columns []column
		for _, n := range p.Goroutines {
			columns = append(columns, column(n))
		}
		sections = append(sections, harness.Section{Title: fmt.Sprintf(title, w.Name), Table: harness.Grid("", some, columns, column.Key, func(c contender, n column) string {
			at := cell{c.name, w.Slug, int(n)}
			if len(p.results[at]) == 0 {
				return "–"
			}
			return text(c, at)
		})})
	}
	return sections
}

// A column is a number of goroutines.
type column int

// Key returns the head of the column.
func (n column) Key() string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// best returns the peer of the kinds that decides most in a second, and false if there is none.
func (p *plan) best(w workload, goroutines int, kinds ...kind) (cell, bool) {
	top, most := cell{}, math.Inf(-1)
	for _, c := range p.on(redisEngine) {
		at := cell{c.name, w.Slug, goroutines}
		if r := p.median(at, rate); slices.Contains(kinds, c.kind) && r > most {
			top, most = at, r
		}
	}
	return top, top.contender != ""
}

// ratios returns a table that compares weir with the best peers. It has no rows without weir.
func (p *plan) ratios(all []workload) *report.Table {
	t := &report.Table{Head: []string{"", "weir", "best peer as documented", "its decisions", "times as fast", "Redis' time, its / weir's", "best of all peers", "its decisions", "times as fast", "Redis' time, its / weir's"}}
	if !slices.ContainsFunc(p.contenders, func(c contender) bool { return c.name == weirRedis }) {
		return t
	}
	for _, w := range all {
		for _, n := range p.Goroutines {
			row := []string{fmt.Sprintf("%s, %d", w.Name, n), p.number(cell{weirRedis, w.Slug, n}, rate)}
			row = append(row, p.beside(w, n, documented)...)
			t.Add(append(row, p.beside(w, n, documented, tuned)...)...)
		}
	}
	return t
}

// beside returns the cells that compare weir with the best peer of the kinds.
func (p *plan) beside(w workload, goroutines int, kinds ...kind) []string {
	peer, ok := p.best(w, goroutines, kinds...)
	if !ok {
		return []string{"–", "–", "–", "–"}
	}
	own := cell{weirRedis, w.Slug, goroutines}
	return []string{
		peer.contender, p.number(peer, rate), report.Number(report.Ratio(p.each(own, rate), p.each(peer, rate))),
		report.Number(report.Ratio(p.each(peer, server), p.each(own, server))),
	}
}

// remarks returns a line for each cell that did not decide as it should: its figures mean little.
func (p *plan) remarks() (lines []string) {
	for _, c := range p.contenders {
		for _, w := range p.workloads(c.engine) {
			for _, n := range p.Goroutines {
				for _, text := range p.faults(c, w, cell{c.name, w.Slug, n}) {
					lines = append(lines, fmt.Sprintf("- %s, %s, %s: %s\n", c.name, w.Name, column(n).Key(), text))
				}
			}
		}
	}
	return lines
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
