package harness

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/weirlimit/weir/bench/report"
)

// A Result is one measurement.
type Result struct {
	Contender, Workload string
	Timing              Timing
	// Heap has the bytes of a key: without its text, and with it. It is 0 in all workloads but one.
	Heap [2]float64
}

// Results are all measurements of a command, in the order of the rounds.
type Results []Result

// Values returns a figure of each round.
func (r Results) Values(contender, workload string, of func(Timing) float64) []float64 {
	var v []float64
	for _, one := range r {
		if one.Contender == contender && one.Workload == workload {
			v = append(v, of(one.Timing))
		}
	}
	return v
}

// WallTime is the time that passes for one request, in nanoseconds.
func WallTime(t Timing) float64 { return t.Nanoseconds }

// CPUTime is the processor time of one request, in nanoseconds. Other work on the machine changes
// it less than the wall time.
func CPUTime(t Timing) float64 { return t.Processor }

// Allocs is the number of allocations of one request.
func Allocs(t Timing) float64 { return t.Allocs }

// Bytes is the number of bytes that one request allocates.
func Bytes(t Timing) float64 { return t.Bytes }

// Fault returns a line about a pair whose requests were not all admitted, or all denied; otherwise
// "".
func (r Results) Fault(contender, workload, title string, denied bool) string {
	var parts []Timing
	for _, one := range r {
		if one.Contender == contender && one.Workload == workload {
			parts = append(parts, one.Timing)
		}
	}
	sum := Sum(parts)
	got, verb := sum.Admitted, "admitted"
	if denied {
		got, verb = sum.Denied, "denied"
	}
	if got == sum.Requests {
		return ""
	}
	return fmt.Sprintf("- %s, %s: %s %d of %d, should have been all\n", contender, title, verb, got, sum.Requests)
}

// WriteBenchstat writes a line for each measurement into the file of -benchstat, if there is one.
func (s Settings) WriteBenchstat(results Results) error {
	if s.Benchstat == "" {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/weirlimit/weir/bench/%s\n", runtime.GOOS, runtime.GOARCH, s.Command)
	for _, r := range results {
		name := fmt.Sprintf("Benchmark%s/peer=%s-%d", title(r.Workload), slug(r.Contender), runtime.GOMAXPROCS(0))
		if t := r.Timing; t.Requests > 0 {
			fmt.Fprintf(&b, "%s\t%d\t%.2f ns/op\t%.0f B/op\t%.0f allocs/op\t%.0f cpu-ns/op\n", name, t.Requests, t.Nanoseconds, t.Bytes, t.Allocs, t.Processor)
		} else {
			fmt.Fprintf(&b, "%s\t1\t%.1f B/key\t%.1f B/key-with-text\n", name, r.Heap[0], r.Heap[1])
		}
	}
	return os.WriteFile(s.Benchstat, []byte(b.String()), 0o600)
}

func title(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// slug removes characters that the benchmark format, or a file system, gives a meaning to.
func slug(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "/", "-", "=", "-", "*", "").Replace(name)
}

// WriteHeader writes the machine, the rounds, and the versions of the contenders.
func (s Settings) WriteHeader(out io.Writer, more, versions string) {
	fmt.Fprintf(out, "%s, %s/%s, %d cores; medians of %d rounds of %v%s.\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), s.Rounds, s.Time, more)
	fmt.Fprintln(out, versions+strings.Repeat("\n", min(1, len(versions))))
}

// Median returns the short text of the median.
func Median(values []float64) string { return report.Number(report.Median(values)) }

// Grid returns a table with a row for each contender and a column for each workload.
func Grid[C, W Keyed](corner string, contenders []C, workloads []W, head func(W) string, cell func(C, W) string) *report.Table {
	t := &report.Table{Head: []string{corner}}
	for _, w := range workloads {
		t.Head = append(t.Head, head(w))
	}
	for _, c := range contenders {
		row := []string{c.Key()}
		for _, w := range workloads {
			row = append(row, cell(c, w))
		}
		t.Add(row...)
	}
	return t
}

// A Section is a table under a title.
type Section struct {
	Title string
	Table *report.Table
}

// WriteSections writes tables, and lines about contenders that did not decide as they should.
func WriteSections(out io.Writer, faults []string, sections ...Section) error {
	for _, s := range sections {
		if err := s.Table.Write(out, s.Title); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, strings.Join(faults, ""))
	return err
}
