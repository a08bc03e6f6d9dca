package faults

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A row is the result of a fault.
type row struct {
	engine, fault, loses string
	calls                int
	counts               [effects]int
	over, lost           int64
	p999, longest        time.Duration
	refusal              time.Duration // 99.9 percentile of refused calls
	recovery             time.Duration
	inTime               float64 // percent of the calls within the timeout plus 100 ms
	left, peak           int     // goroutines
}

var (
	rowsMutex sync.Mutex
	rows      []row
)

func newRow(r *run, calls []call, f findings, mended time.Time) row {
	w := row{
		engine: r.name, fault: r.fault.name, loses: r.fault.loses, calls: len(calls),
		counts: f.counts, over: f.over, lost: f.lost,
	}
	var took, refusals []time.Duration
	inTime := 0
	for _, c := range calls {
		d := c.Took
		if c.Effect == refused {
			refusals = append(refusals, d)
		}
		took = append(took, d)
		if d <= timeout+100*time.Millisecond {
			inTime++
		}
	}
	w.p999, w.longest = quantiles(took)
	w.refusal, _ = quantiles(refusals)
	w.inTime = 100 * float64(inTime) / float64(len(took))
	w.recovery = recovery(calls, mended.UnixNano())
	return w
}

// recovery returns the time from the mend to the first of callsAfter calls in a row that do not
// fail, or 0 if there are none.
func recovery(calls []call, mended int64) time.Duration {
	calls = slices.SortedFunc(slices.Values(calls), func(a, b call) int { return cmp.Compare(a.End, b.End) })
	streak, first := 0, int64(0)
	for _, c := range calls {
		switch {
		case c.Start < mended:
			continue
		case c.Effect >= refused:
			streak = 0
			continue
		case streak == 0:
			first = c.End
		}
		if streak++; streak == callsAfter {
			return time.Duration(first - mended)
		}
	}
	return 0
}

// quantiles returns the 99.9 percentile and the greatest of durations.
func quantiles(all []time.Duration) (p999, longest time.Duration) {
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)*999/1000], all[len(all)-1]
}

const (
	docs       = "../../docs/faults.md"
	begin, end = "<!-- begin of the table -->\n", "<!-- end of the table -->\n"
)

// writeDocs replaces the table in the docs.
func writeDocs() int {
	page, err := os.ReadFile(docs)
	before, rest, found := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if err == nil && (!found || !ended) {
		err = fmt.Errorf("%s has no lines %q and %q", docs, begin, end)
	}
	if err == nil {
		err = os.WriteFile(docs, []byte(before+begin+"\n"+table()+"\n"+end+after), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// table returns the rows in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| engine | fault | calls | admitted | over | lost | refused | nothing changed | unknown | " +
		"p99.9 | longest | in time | p99.9 refused | recovery |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range rows {
		lost, refusal := "–", "–"
		if w.loses != "" {
			lost = fmt.Sprintf("%d (%s)", w.lost, w.loses)
		}
		recovered := "–"
		if w.recovery > 0 {
			recovered = ms(w.recovery)
		}
		if w.counts[refused] > 0 {
			refusal = fmt.Sprintf("%.2f ms", w.refusal.Seconds()*1000)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s | %d | %d | %d | %s | %s | %.2f %% | %s | %s |\n",
			w.engine, w.fault, w.calls, w.counts[admitted], w.over, lost, w.counts[refused], w.counts[nothing],
			w.counts[unknown], ms(w.p999), ms(w.longest), w.inTime, refusal, recovered)
	}
	return b.String()
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
