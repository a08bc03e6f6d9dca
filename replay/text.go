package replay

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	textTime  = "2006-01-02 15:04:05"
	barWidth  = 40
	shownName = 60 // bytes of a client's name in a table
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	r.writeTraffic(out)
	r.writeProblems(out)
	if r.Requests > 0 {
		r.writeLimits(out)
		for _, l := range r.Limits {
			r.writeTop(out, l)
		}
		r.writeTimeline(out)
	}
	return out.Flush()
}

func (r *Report) writeTraffic(w *bufio.Writer) {
	fmt.Fprintf(w, "%s of %s (by %s)", some(r.Requests, "request"), some(r.Clients, "client"), strings.Join(r.Key, ", "))
	if r.Cost > 1 {
		fmt.Fprintf(w, ", each costing %s", grouped(r.Cost))
	}
	if r.Requests > 0 {
		fmt.Fprintf(w, ", %s to %s UTC (%s)", r.First.Format(textTime), r.Last.Format(textTime), short(r.Last.Sub(r.First)))
	}
	fmt.Fprintln(w)
}

func (r *Report) writeProblems(w *bufio.Writer) {
	r.Unparsed.write(w, "not understood, and not counted as requests")
	r.CutShort.write(w, "cut short, and counted all the same")
	window := short(seconds(r.WindowSeconds))
	r.Late.write(w, "came too late to be put in order", "behind", window)
	r.Ahead.write(w, "came too early to be believed", "ahead of", window)
	if n := r.WithoutKey; n > 0 {
		fmt.Fprintf(w, "%s without %s, taken as \"-\"\n", some(n, "request"), strings.Join(r.Key, " or "))
	}
}

func (p *Problems) write(w *bufio.Writer, what string) {
	if p.Lines == 0 {
		return
	}
	fmt.Fprintf(w, "%s %s:\n", some(p.Lines, "line"), what)
	for _, s := range p.Shown {
		fmt.Fprintf(w, "  %s:%d: %s: %s\n", printable(s.Log), s.Line, printable(s.Reason), printable(s.Text))
	}
	writeMore(w, p.Lines-int64(len(p.Shown)))
}

func (o *OutOfPlace) write(w *bufio.Writer, what, where, window string) {
	if o.Requests == 0 {
		return
	}
	fmt.Fprintf(w, "%s %s (window %s), and counted at the newest time seen; the furthest by %s:\n",
		some(o.Requests, "request"), what, window, short(seconds(o.FurthestSeconds)))
	for _, m := range o.Shown {
		fmt.Fprintf(w, "  %s:%d: %s is %s %s line %d\n", printable(m.Log), m.Line, m.Time.Format(textTime),
			short(m.Time.Sub(m.Newest).Abs()), where, m.NewestLine)
	}
	writeMore(w, o.Requests-int64(len(o.Shown)))
}

func writeMore(w *bufio.Writer, more int64) {
	if more > 0 {
		fmt.Fprintf(w, "  and %s more\n", grouped(more))
	}
}

func (r *Report) writeLimits(w *bufio.Writer) {
	rows := [][]string{{"limit", ">denied", ">share", ">clients denied"}}
	waits := false
	for _, l := range r.Limits {
		waits = waits || l.Delayed > 0
	}
	if waits {
		rows[0] = append(rows[0], ">delayed", ">longest delay")
	}
	for _, l := range r.Limits {
		row := []string{l.Limit.String(), grouped(l.Denied), percent(l.DeniedShare), grouped(l.ClientsDenied)}
		if waits {
			row = append(row, grouped(l.Delayed), short(time.Duration(l.LongestDelayUS)*time.Microsecond))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(w)
	writeTable(w, rows)
	for _, l := range r.Limits {
		if l.Note != "" {
			fmt.Fprintf(w, "Note: %s.\n", l.Note)
		}
	}
}

func (r *Report) writeTop(w *bufio.Writer, l LimitReport) {
	if len(l.Top) == 0 {
		return
	}
	fmt.Fprintf(w, "\nDenied most under %s:\n", l.Limit)
	rows := [][]string{{"client", ">requests", ">denied", "first denied", "last denied"}}
	for _, c := range l.Top {
		name := printable(clip(strings.Join(c.Client, " "), shownName))
		rows = append(rows, []string{
			name, grouped(c.Requests), grouped(c.Denied), c.First.Format(textTime), c.Last.Format(textTime),
		})
	}
	writeTable(w, rows)
}

// writeTimeline draws requests and, for a single limit, how many of them were denied. Several limits have a column
// of numbers each, in their order.
func (r *Report) writeTimeline(w *bufio.Writer) {
	var most int64
	for _, b := range r.Timeline {
		most = max(most, b.Requests)
	}
	rows := [][]string{{"from (UTC)", ">requests"}}
	legend := "bar: requests"
	if len(r.Limits) == 1 {
		rows[0] = append(rows[0], ">denied")
		legend = "█ denied, ░ let through"
	} else {
		for _, l := range r.Limits {
			rows[0] = append(rows[0], ">"+l.Limit.String())
		}
	}
	fmt.Fprintf(w, "\nWhen, in buckets of %s (%s):\n", short(seconds(r.BucketSeconds)), legend)
	layout := textTime
	if r.BucketSeconds%60 == 0 {
		layout = strings.TrimSuffix(textTime, ":05")
	}
	rows[0] = append(rows[0], "")
	for _, b := range r.Timeline {
		row := []string{b.Start.Format(layout), grouped(b.Requests)}
		for _, n := range b.Denied {
			row = append(row, grouped(n))
		}
		var denied int64
		if len(b.Denied) == 1 {
			denied = b.Denied[0]
		}
		rows = append(rows, append(row, bar(b.Requests, denied, most)))
	}
	writeTable(w, rows)
}

// bar draws all as a share of most, and the part of it that was denied. What is more than 0 is seen.
func bar(all, denied, most int64) string {
	width := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(float64(n)/float64(most)*barWidth))
	}
	dark, length := width(denied), width(all)
	if denied < all && dark == length && length > 1 {
		dark--
	}
	return strings.Repeat("█", dark) + strings.Repeat("░", length-dark)
}

// writeTable writes rows in columns. In a column whose heading begins with > the cells are at the right.
func writeTable(w *bufio.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	right := make([]bool, len(rows[0]))
	for i, heading := range rows[0] {
		rows[0][i], right[i] = strings.CutPrefix(heading, ">")
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var text strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				cell, pad = pad+cell, ""
			}
			text.WriteString(cell + pad + "  ")
		}
		fmt.Fprintln(w, strings.TrimRight(text.String(), " "))
	}
}

// some is a number of things.
func some(n int64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return grouped(n) + " " + thing
}

// grouped writes a number that is not negative with a comma between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// short is d.String() without trailing zero parts, and with days.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	days, rest := int64(d/day), d%day
	text := rest.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	switch {
	case days == 0:
		return text
	case rest == 0:
		return grouped(days) + "d"
	}
	return grouped(days) + "d" + text
}

func percent(share float64) string { return strconv.FormatFloat(share*100, 'f', 2, 64) + " %" }

// printable writes what a terminal would obey instead of show as an escape.
func printable(s string) string {
	var out strings.Builder
	for _, r := range legible(s) {
		switch {
		case unicode.IsPrint(r):
			out.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&out, `\x%02x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}
