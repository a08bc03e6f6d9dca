package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

// each returns one figure of every round.
func (m *measurement) each(name string, pipeline int, figure func(result) float64) []float64 {
	var v []float64
	for _, r := range m.results[pair{name, pipeline}] {
		v = append(v, figure(r))
	}
	return v
}

func rate(r result) float64    { return r.perSecond }
func seconds(r result) float64 { return r.cpu }
func busy(r result) float64    { return 100 * r.busy }

// A cell is the text for a target under a pipeline.
type cell func(name string, pipeline int) string

func (m *measurement) print(out io.Writer) error {
	fmt.Fprintf(out, "%s, %s/%s; %d connections; medians of %d rounds of about %v.\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, connections, m.rounds, m.time)
	err := m.write(out, "Requests a second · server's processor seconds per million · how busy its processor was:", m.absolute)
	for _, t := range m.targets {
		if !strings.HasPrefix(t.name, "weir ") || err != nil {
			continue
		}
		err = m.write(out, "Server's processor time per request, times that of "+t.name+" (median of the rounds' ratios; above 1: weir takes less):",
			func(name string, p int) string {
				return report.Number(report.Ratio(m.each(name, p, seconds), m.each(t.name, p, seconds)))
			})
	}
	return err
}

func (m *measurement) absolute(name string, p int) string {
	return fmt.Sprintf("%s · %s · %.0f %%", report.Number(report.Median(m.each(name, p, rate))),
		report.Number(report.Median(m.each(name, p, seconds))), report.Median(m.each(name, p, busy)))
}

func (m *measurement) write(out io.Writer, title string, text cell) error {
	if _, err := fmt.Fprintf(out, "%s\n\n", title); err != nil {
		return err
	}
	return m.table(text).Write(out)
}

func (m *measurement) table(text cell) *report.Table {
	t := &report.Table{Head: []string{""}}
	for _, p := range pipelines {
		t.Head = append(t.Head, fmt.Sprintf("pipeline %d", p))
	}
	for _, each := range m.targets {
		row := []string{each.name}
		for _, p := range pipelines {
			row = append(row, text(each.name, p))
		}
		t.Add(row...)
	}
	return t
}
