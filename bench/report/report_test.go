package report_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weirlimit/weir/bench/report"
)

func TestMedianTakesTheMiddleAndLeavesNaNOut(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{nan, 7}, 7}} {
		if got := report.Median(c.in); got != c.want {
			t.Errorf("Median(%v) = %v, want %v", c.in, got, c.want)
		}
	}
	if got := report.Median([]float64{nan}); !math.IsNaN(got) {
		t.Errorf("median of nothing is %v, want NaN", got)
	}
}

func TestRatioComparesWithinARound(t *testing.T) {
	// The second round was ten times slower for both.
	if got := report.Ratio([]float64{2, 20, 2}, []float64{1, 10, 1}); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0.00", 1.256: "1.26", 25.34: "25.3", 126.4: "126", 87_123: "87k", 3_290_000: "3.29M", math.NaN(): "–", math.Inf(1): "–"} {
		if got := report.Number(x); got != want {
			t.Errorf("Number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestTableIsMarkdown(t *testing.T) {
	table := report.Table{Head: []string{"", "a"}}
	table.Add("weir", "1")
	var b strings.Builder
	if err := table.Write(&b, "Title:"); err != nil {
		t.Fatal(err)
	}
	if err := (&report.Table{Head: []string{""}}).Write(&b, "Empty:"); err != nil {
		t.Fatal(err)
	}
	if want := "Title:\n\n|  | a |\n|---|---:|\n| weir | 1 |\n\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
