package bounds

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// The sizes that are searched: so many units, and each of these windows.
const searchedCount = 3

var searchedWindows = []int64{6, 12}

// A Row is what was found for one algorithm.
type Row struct {
	// Algorithm names it; Measure says what was counted, where that isn't what was admitted.
	Algorithm algorithm.Algorithm
	Measure   string
	// HalfOpen, Closed and Mixed are the most units found in a window of length w: half-open, closed, and closed
	// when requests may cost more than 1. Any is the formula that held for closed intervals of every length.
	HalfOpen, Closed, Mixed, Any string
	// Reaction is the most units before the first denial of a client at 1.1, 2 and 10 times a limit of 100.
	Reaction []int64
	// Words is the most words of state for a key of a limit of 100 units, each of 8 bytes.
	Words int
}

// Rows searches every algorithm, in about a second. An error means that one admits other than what its formula says.
func Rows() ([]Row, error) {
	var rows []Row
	for _, c := range claims() {
		row, err := c.row()
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (c claim) row() (Row, error) {
	row := Row{Algorithm: c.algorithm, Any: c.bound.any.text}
	if c.released {
		row.Measure = "let go"
	}
	for _, w := range searchedWindows {
		s, err := c.check(searchedCount, w, c.options)
		if err != nil {
			return row, err
		}
		row.HalfOpen, row.Closed, row.Mixed = c.bound.halfOpen.at(s), c.bound.closed.at(s), c.bound.mixed.at(s)
	}
	for _, tenths := range speeds {
		n, err := reaction(c.algorithm, tenths)
		if err != nil {
			return row, err
		}
		row.Reaction = append(row.Reaction, n)
	}
	var err error
	row.Words, err = words(algorithm.Limit{Algorithm: c.algorithm, Count: 100, Period: time.Minute})
	return row, err
}

// at writes the formula with its value.
func (f formula) at(s size) string { return fmt.Sprintf("%s = %d", f.text, f.of(s)) }

// check searches a limit and compares what it admits with the claim.
func (c claim) check(q, w int64, options string) (size, error) {
	text := text(c.algorithm, q, w, options)
	s, err := newSearch(text)
	if err != nil {
		return size{}, err
	}
	limit := s.program.Limit()
	z := size{q: q, b: limit.Capacity(), w: w}
	if limit.Cells > 0 {
		z.d = w / limit.Cells
	}
	single, mixed := s.most(1, c.released, 2*w), s.most(z.b, c.released, w)
	differ := func(what string, found, claimed int64) {
		if err == nil && found != claimed {
			err = fmt.Errorf("bounds: %s admits %d units in %s; claimed: %d", text, found, what, claimed)
		}
	}
	differ("a half-open window", single[w-1], c.bound.halfOpen.of(z))
	differ("a closed window", single[w], c.bound.closed.of(z))
	differ("a closed window at mixed costs", mixed[w], c.bound.mixed.of(z))
	for length, found := range single {
		if c.bound.any.of != nil {
			differ(fmt.Sprintf("a closed interval of %d ticks", length), found, c.bound.any.of(z, int64(length)))
		}
	}
	return z, err
}

// Write writes the rows as a Markdown table.
func Write(w io.Writer, rows []Row) error {
	var b strings.Builder
	b.WriteString("| algorithm | any [t, t+w) | any [t, t+w] | the same, mixed costs | any [t, t+L] | at 1.1× | at 2× | at 10× | state at 100/1m |\n")
	b.WriteString("|---|---|---|---|---|--:|--:|--:|--:|\n")
	for _, r := range rows {
		name := string(r.Algorithm)
		if r.Measure != "" {
			name += ", " + r.Measure
		}
		growth := r.Any
		if growth == "" {
			growth = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |", name, r.HalfOpen, r.Closed, r.Mixed, growth)
		for _, n := range r.Reaction {
			fmt.Fprintf(&b, " %d |", n)
		}
		fmt.Fprintf(&b, " %s |\n", state(r.Words))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func state(words int) string {
	if words == 1 {
		return "1 word, 8 B"
	}
	return fmt.Sprintf("%d words, %d B", words, 8*words)
}
