package servers

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/report"
)

// each returns one figure of every round.
func (m *measurement) each(t *target, p pipeline, figure func(result) float64) []float64 {
	var v []float64
	for _, r := range m.results[pair{t.name, p}] {
		v = append(v, figure(r))
	}
	return v
}

func rate(r result) float64    { return r.perSecond }
func seconds(r result) float64 { return r.cpu }
func busy(r result) float64    { return 100 * r.busy }

func (m *measurement) print(out io.Writer) error {
	m.WriteHeader(out, fmt.Sprintf("; %d connections", connections), "")
	sections := []harness.Section{{
		Title: "Requests a second · server's processor seconds per million · how busy its processor was:",
		Table: harness.Grid("", m.targets, pipelines, pipeline.Key, func(t *target, p pipeline) string {
			return fmt.Sprintf("%s · %s · %.0f %%", harness.Median(m.each(t, p, rate)), harness.Median(m.each(t, p, seconds)), report.Median(m.each(t, p, busy)))
		}),
	}}
	for _, weir := range m.targets {
		if !strings.HasPrefix(weir.name, "weir ") {
			continue
		}
		sections = append(sections, harness.Section{
			Title: "Server's processor time per request, times that of " + weir.name + " (median of the rounds' ratios; above 1: weir takes less):",
			Table: harness.Grid("", m.targets, pipelines, pipeline.Key, func(t *target, p pipeline) string {
				return report.Number(report.Ratio(m.each(t, p, seconds), m.each(weir, p, seconds)))
			}),
		})
	}
	return harness.WriteSections(out, nil, sections...)
}
