package report

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// A Table is written as markdown: the first column to the left, the others to the right.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes a title, the table, and an empty line after each; nothing if the table has no rows.
func (t *Table) Write(w io.Writer, title string) error {
	if len(t.Rows) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString(title + "\n\n")
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.Head)
	b.WriteString("|---" + strings.Repeat("|---:", len(t.Head)-1) + "|\n")
	for _, r := range t.Rows {
		line(r)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// Number writes three significant digits at least, thousands and millions short, and a dash for what is no number.
func Number(x float64) string {
	switch {
	case math.IsNaN(x), math.IsInf(x, 0):
		return "–"
	case x >= 1e6:
		return fmt.Sprintf("%.2fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}
