package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// A row is the result of one fault.
type row struct {
	engine, fault, loses       string
	calls                      int
	admitted, nothing, unknown int
	over, lost                 int64
	longest, p999, recovery    time.Duration
	inTime                     float64 // percent of the calls within the timeout plus 100 ms
	left, peak                 int
}

var (
	rowsMutex sync.Mutex
	rows      []row
)

func newRow(r *run, calls []call, f findings, mended time.Time) row {
	w := row{
		engine: r.name, fault: r.fault.name, loses: r.fault.loses, calls: len(calls),
		admitted: f.counts[admitted], nothing: f.counts[nothing], unknown: f.counts[unknown],
		over: f.over, lost: f.lost,
	}
	var took []time.Duration
	var first, last int64 // end of the first admitted call, and of the last failed one, after the mend
	inTime := 0
	for _, c := range calls {
		d := time.Duration(c.End - c.Start)
		took = append(took, d)
		if d <= timeout+100*time.Millisecond {
			inTime++
		}
		if c.Start < mended.UnixNano() {
			continue
		}
		switch {
		case c.Effect >= nothing:
			last = max(last, c.End)
		case first == 0 || c.End < first:
			first = c.End
		}
	}
	slices.Sort(took)
	w.longest, w.p999 = took[len(took)-1], took[len(took)*999/1000]
	w.inTime = 100 * float64(inTime) / float64(len(took))
	w.recovery = time.Duration(max(first, last, mended.UnixNano()) - mended.UnixNano())
	return w
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
	b.WriteString("| engine | fault | calls | admitted | over the bound | lost by design | failed, nothing changed | " +
		"failed, unknown | p99.9 | longest | ≤ timeout + 100 ms | recovery |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, w := range rows {
		lost := "–"
		if w.loses != "" {
			lost = fmt.Sprintf("%d (%s)", w.lost, w.loses)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %s | %d | %d | %s | %s | %.2f %% | %s |\n", w.engine, w.fault, w.calls, w.admitted,
			w.over, lost, w.nothing, w.unknown, ms(w.p999), ms(w.longest), w.inTime, ms(w.recovery))
	}
	return b.String()
}

func ms(d time.Duration) string {
	return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
}
