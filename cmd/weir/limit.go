package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/bounds"
)

// limitCommand explains limits.
type limitCommand struct {
	Explain limitExplain `cmd:"" help:"Print the meaning of a limit: its canonical text, what it admits at once, over time and at worst, and its state."`
}

type limitExplain struct {
	Text []string `arg:"" name:"limit" help:"The limit text, such as 100/min or \"gcra 10/1s burst=20\". Several words are one text."`
	JSON bool     `name:"json" help:"Write it as JSON."`
}

// A limitExplanation is the output of limitExplain. Its JSON form is stable: fields may be added.
type limitExplanation struct {
	Limit     weir.Limit `json:"limit"`
	Algorithm string     `json:"algorithm"`
	Meaning   string     `json:"meaning"`
	Capacity  int64      `json:"capacity"`        // units at once from a fresh key
	PerSecond float64    `json:"rate_per_second"` // on average; 0 for concurrent, which has no rate
	Worst     uint64     `json:"worst_units"`     // in a window of the period
	Formula   string     `json:"worst_formula"`   // of the count q and the capacity b
	StateSize int64      `json:"state_bytes"`     // for a key, at most
	Note      string     `json:"note,omitempty"`  // see [weir.Limit.Note]
}

// Run explains the limit.
func (c *limitExplain) Run(p *program) error {
	l, err := weir.ParseLimit(strings.Join(c.Text, " "))
	if err != nil {
		return err
	}
	words, err := bounds.Words(l)
	if err != nil {
		return err
	}
	e := limitExplanation{
		Limit: l, Algorithm: string(l.Algorithm), Meaning: meaning(l), Capacity: l.Capacity(), StateSize: 8 * words, Note: l.Note(),
	}
	e.Worst, e.Formula = bounds.Window(l)
	if l.Algorithm != weir.Concurrent {
		e.PerSecond = float64(l.Count) / l.Period.Seconds()
	}
	if !c.JSON {
		return e.write(p)
	}
	encoder := json.NewEncoder(p.stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(e)
}

// write writes the explanation for people.
func (e *limitExplanation) write(p *program) error {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { _, _ = fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("limit", "%v", e.Limit)
	row("algorithm", "%s: %s", e.Algorithm, e.Meaning)
	row("at once", "%s from a fresh key; a request that costs more never passes", units(uint64(e.Capacity)))
	if e.PerSecond > 0 {
		row("rate", "%s", e.rate())
	}
	row("at worst", "%s in %s (%s, where q is the count and b the units at once)", units(e.Worst), e.window(), e.Formula)
	row("state", "at most %d bytes for a key, besides the key and the record of the store", e.StateSize)
	if e.Note != "" {
		row("note", "%s", e.Note)
	}
	return w.Flush()
}

// rate returns the average rate, as the interval between units where that is a millisecond or
// longer.
func (e *limitExplanation) rate() string {
	if interval := float64(e.Limit.Period) / float64(e.Limit.Count); interval >= float64(time.Millisecond) {
		return "one unit each " + period(time.Duration(interval).Round(time.Microsecond)) + ", on average"
	}
	return strconv.FormatFloat(e.PerSecond, 'f', 0, 64) + " units per second, on average"
}

// window returns the window of the worst case.
func (e *limitExplanation) window() string {
	switch e.Limit.Algorithm {
	case weir.Calendar:
		return "less than a " + string(e.Limit.Unit) + ", across its edge"
	case weir.LeakyQueue:
		return "any " + period(e.Limit.Period) + ", by the time of their turn"
	case weir.Concurrent:
		return "flight, if each is released or renewed within its lease"
	}
	return "any " + period(e.Limit.Period)
}

func units(n uint64) string {
	if n == 1 {
		return "1 unit"
	}
	return strconv.FormatUint(n, 10) + " units"
}

// period returns a duration as the limit text writes it.
func period(d time.Duration) string {
	_, text, _ := strings.Cut(weir.Limit{Count: 1, Period: max(d, 1)}.String(), "/")
	return text
}

// meanings has a sentence for each algorithm. In braces: the count q, the period w, the capacity b,
// the interval T between units, and fields of some algorithms.
var meanings = map[weir.Algorithm]string{
	weir.TokenBucket:    "a bucket of {b} tokens starts full and regains {q} per {w}, continuously; a request takes its cost or is denied",
	weir.GCRA:           "units are due one each {T}; up to {b} may come early at once",
	weir.LeakyBucket:    "a bucket holds {b} units and leaks {q} per {w}, continuously; a request that does not fit is denied",
	weir.LeakyQueue:     "admitted requests wait for their turn, one each {T}; {queue} may wait, and more are denied",
	weir.Cooldown:       "each unit moves the score of a key {T} ahead; a request that moves it more than {w} ahead is denied",
	weir.MinInterval:    "a unit passes if the previous one is at least {T} back",
	weir.RefillBucket:   "a bucket of {b} tokens starts full and regains {q} at once at the end of each {w}",
	weir.FixedWindow:    "at most {q} units pass in each window of {w}; windows are aligned to the Unix epoch, in UTC",
	weir.QuotaReset:     "at most {q} units pass in a window of {w}, which begins with the first request after the previous one has ended",
	weir.SlidingLog:     "at most {q} units pass in the last {w}, counted one by one",
	weir.SlidingWindow:  "at most {q} units pass in the last {w}, estimated from the counts of two windows",
	weir.SlidingBuckets: "at most {q} units pass in the last {w}, counted in {cells} cells",
	weir.Hybrid:         "at most {q} units pass in the first {w}; a key that uses all of them then gets one each {T}",
	weir.Exponential:    "the average rate of a key, weighted towards the last {w}, stays at {q} per {w} or less{strict}",
	weir.Calendar:       "at most {q} units pass in each {unit} of the calendar, in {zone}",
	weir.Concurrent:     "at most {q} units are in flight; each is released, or ends with its lease of {w}",
}

// meaning returns the sentence about the algorithm of a limit.
func meaning(l weir.Limit) string {
	strict := ""
	if l.Strict {
		strict = "; denied requests count, too"
	}
	text := strings.NewReplacer(
		"{q}", strconv.FormatInt(l.Count, 10), "{w}", period(l.Period), "{b}", strconv.FormatInt(l.Capacity(), 10),
		"{T}", period(time.Duration(float64(l.Period)/float64(l.Count))), "{queue}", strconv.FormatInt(l.Queue, 10),
		"{cells}", strconv.FormatInt(l.Cells, 10), "{strict}", strict, "{unit}", string(l.Unit), "{zone}", cmp.Or(l.Zone, "UTC"),
	).Replace(meanings[l.Algorithm])
	return strings.NewReplacer(" 1 tokens", " 1 token", " 1 units pass", " 1 unit passes", " 1 units are", " 1 unit is", " 1 units", " 1 unit").Replace(text)
}
