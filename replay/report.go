package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/weirlimit/weir"
)

// shownProblems is how many lines of each kind of problem a report shows.
const shownProblems = 5

// shownText is how much of such a line it shows, in bytes.
const shownText = 160

// A Report is what limits would have done to the traffic of logs. Its JSON form is stable: fields may be added, none
// changes its meaning. Lists are never null. Times are in UTC, to the second.
//
// Client names and lines are as the log has them; bytes that are no UTF-8 are written as \x and two digits.
type Report struct {
	Key           []string `json:"key"` // the fields that tell clients apart
	Cost          int64    `json:"cost"`
	WindowSeconds int64    `json:"window_seconds"`

	Lines    int64 `json:"lines"`    // Requests and unparsed lines
	Requests int64 `json:"requests"` // all were decided, those cut short, late or ahead too
	Clients  int64 `json:"clients"`
	// WithoutKey counts the requests that lack a field of the key, which is then "-".
	WithoutKey int64 `json:"without_key"`

	// First and Last are the earliest and the latest time of a request, leaving aside those ahead; absent when there
	// is none.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`

	Unparsed Problems    `json:"unparsed"`  // lines that are no requests
	CutShort Problems    `json:"cut_short"` // requests whose line lacks its end
	Late     OutOfPlace  `json:"late"`      // requests too far behind the newest to be put in order
	Ahead    OutOfPlace  `json:"ahead"`     // requests too far ahead of most of those around them
	Logs     []LogCounts `json:"logs"`

	Limits        []LimitReport  `json:"limits"` // in the order in which they were given
	BucketSeconds int64          `json:"bucket_seconds"`
	Timeline      []BucketReport `json:"timeline"` // without gaps, in order
}

// Problems counts lines that are not as they should be, and shows the first few.
type Problems struct {
	Lines int64     `json:"lines"`
	Shown []Problem `json:"shown"`
}

// A Problem is a line that is not as it should be.
type Problem struct {
	Log    string `json:"log"`
	Line   int64  `json:"line"` // the first is 1
	Reason string `json:"reason"`
	Text   string `json:"text"` // the line's beginning
}

// OutOfPlace counts the requests that could not be put in order, and shows the first few. Each was decided at the
// newest time that its log had shown.
type OutOfPlace struct {
	Requests        int64       `json:"requests"`
	FurthestSeconds int64       `json:"furthest_seconds"` // the most that one was from the newest time
	Shown           []Misplaced `json:"shown"`
}

// A Misplaced request is one that was decided at another time than its own.
type Misplaced struct {
	Log        string    `json:"log"`
	Line       int64     `json:"line"`        // the first is 1
	Time       time.Time `json:"time"`        // its own
	NewestLine int64     `json:"newest_line"` // the line with the newest time of its log
	Newest     time.Time `json:"newest"`      // that time
}

// LogCounts is what one log held.
type LogCounts struct {
	Name     string `json:"name"`
	Lines    int64  `json:"lines"`
	Requests int64  `json:"requests"`
	Unparsed int64  `json:"unparsed"`
	CutShort int64  `json:"cut_short"`
	Late     int64  `json:"late"`
	Ahead    int64  `json:"ahead"`
}

// A LimitReport is what one limit did.
type LimitReport struct {
	Limit         weir.Limit `json:"limit"`          // as limit text
	Note          string     `json:"note,omitempty"` // see [weir.Limit.Note]
	Denied        int64      `json:"denied"`
	DeniedShare   float64    `json:"denied_share"` // of all requests: 0 to 1
	ClientsDenied int64      `json:"clients_denied"`
	// Delayed counts the requests that had to wait their turn; only leaky-queue has turns.
	Delayed        int64 `json:"delayed"`
	LongestDelayUS int64 `json:"longest_delay_us"` // microseconds, rounded up
	// Top are the clients denied most: by denials, then by requests, then by name.
	Top []ClientReport `json:"top"`
}

// A ClientReport is what a limit did to one client.
type ClientReport struct {
	Client   []string  `json:"client"` // the fields of the key
	Requests int64     `json:"requests"`
	Denied   int64     `json:"denied"`
	First    time.Time `json:"first"` // when the first request was denied
	Last     time.Time `json:"last"`
}

// A BucketReport is one stretch of the timeline.
type BucketReport struct {
	Start    time.Time `json:"start"`
	Requests int64     `json:"requests"`
	Denied   []int64   `json:"denied"` // by each limit
}

func newReport(o Options, logs []Log) Report {
	r := Report{
		Key: o.Key.names(), Cost: o.Cost, WindowSeconds: int64(o.Window.Seconds()),
		Unparsed: Problems{Shown: []Problem{}}, CutShort: Problems{Shown: []Problem{}},
		Late: OutOfPlace{Shown: []Misplaced{}}, Ahead: OutOfPlace{Shown: []Misplaced{}},
		Logs: make([]LogCounts, len(logs)), Limits: []LimitReport{},
	}
	for i, log := range logs {
		r.Logs[i].Name = legible(log.Name)
	}
	return r
}

// conclude fills in what is known at the end.
func (r *run) conclude() {
	for _, log := range r.report.Logs {
		r.report.Lines += log.Lines
		r.report.Requests += log.Requests
	}
	r.report.Clients = int64(len(r.clients.keys))
	for _, t := range r.tallies {
		r.report.Limits = append(r.report.Limits, t.report(&r.clients, r.options.Key, r.report.Requests, r.options.Top))
	}
	r.report.BucketSeconds = r.timeline.width
	r.report.Timeline = r.timeline.report()
}

func (r *Report) span(second int64) {
	t := at(second)
	if r.First.IsZero() || t.Before(r.First) {
		r.First = t
	}
	if r.Last.IsZero() || t.After(r.Last) {
		r.Last = t
	}
}

func (p *Problems) add(log string, line int64, reason string, text []byte) {
	p.Lines++
	if len(p.Shown) < shownProblems {
		p.Shown = append(p.Shown, Problem{log, line, reason, clip(string(text[:min(len(text), shownText+1)]), shownText)})
	}
}

func (o *OutOfPlace) add(m Misplaced) {
	o.Requests++
	distance := m.Time.Sub(m.Newest).Abs() / time.Second
	o.FurthestSeconds = max(o.FurthestSeconds, int64(distance))
	if len(o.Shown) < shownProblems {
		o.Shown = append(o.Shown, m)
	}
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// legible writes bytes that are no UTF-8 as \x and two digits.
func legible(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out []byte
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			out = fmt.Appendf(out, `\x%02x`, s[0])
		} else {
			out = append(out, s[:n]...)
		}
		s = s[n:]
	}
	return string(out)
}

// clip is the beginning of s, legible, of at most n bytes of s.
func clip(s string, n int) string {
	if len(s) <= n {
		return legible(s)
	}
	for cut := n; n > 0 && n > cut-utf8.UTFMax && !utf8.RuneStart(s[n]); {
		n--
	}
	return legible(s[:n]) + "..."
}
