package bounds_test

import (
	"os"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm/bounds"
)

func TestPageHoldsTheTableThatTheCommandPrints(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := bounds.Rows()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := bounds.Write(&table, rows); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n\n"+table.String()+"\n") {
		t.Errorf("docs/algorithms.md does not hold this table, printed by `weir bounds`:\n%s", &table)
	}
}
