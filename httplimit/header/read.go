package header

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Longest is the longest time that Read returns: a server that asks for more means it no better.
const Longest = 10 * 365 * 24 * time.Hour

// A Report is what an answer says of limits.
type Report struct {
	Retry      bool          // the answer says when to try again
	RetryAfter time.Duration // how long to wait, if Retry. It wins over what Limits say
	Limits     []State       // in the order of the answer, each name once, or once in each partition
}

// A State is what an answer says of one limit.
type State struct {
	Name      string        // "" of X-RateLimit-*, which have no names
	Remaining int64         // what is left
	Within    time.Duration // no more than Remaining can be used for so long; 0: it is not said
	Quota     int64         // at most so much in each Window, if the answer has a RateLimit-Policy for it; 0: it is not said
	Window    time.Duration // 0: it is not said
	Unit      string        // what is counted, as RateLimit-Policy calls it: "" is requests
	Partition string        // the bytes of the partition key, pk: what the server counts apart under one name; "" if it says none
}

// Read reads what an answer that came now says of limits. What is malformed is as if it were not there.
//
// The limits are those of RateLimit and RateLimit-Policy; if there are none, that of X-RateLimit-*, or of RateLimit-Remaining and -Reset, as drafts of the IETF once had them.
// Their Reset is taken to be seconds, or if that would be more than a year, a Unix time. An answer out of a cache, which has an Age, says nothing of limits as they are now.
func Read(h http.Header, now time.Time) Report {
	var r Report
	r.RetryAfter, r.Retry = readRetryAfter(h, now)
	if len(h["Age"]) > 0 {
		return r
	}
	if r.Limits = readLists(h); r.Limits != nil {
		return r
	}
	for _, prefix := range []string{"X-Ratelimit-", "X-Rate-Limit-", "Ratelimit-"} {
		if s, ok := readX(h, prefix, now); ok {
			r.Limits = []State{s}
			break
		}
	}
	return r
}

// readRetryAfter returns the longest of what Retry-After says, in seconds or as a date: of several lines, or of lines that something on the way has joined.
// A date is meant by the clock of the server, which its Date shows.
func readRetryAfter(h http.Header, now time.Time) (longest time.Duration, ok bool) {
	if len(h["Retry-After"]) == 0 {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	for _, line := range h["Retry-After"] {
		for line != "" {
			value, rest, _ := strings.Cut(line, ",")
			wait, fine := readWait(value, now)
			if !fine { // a date may have a comma of its own
				second, _, _ := strings.Cut(rest, ",")
				wait, fine = readWait(value+","+second, now)
			}
			if line = rest; fine {
				longest, ok = max(longest, min(wait, Longest)), true
			}
		}
	}
	return longest, ok
}

// readWait reads one value of Retry-After.
func readWait(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if wait, ok := readSeconds(value); ok {
		return wait, true
	}
	at, err := http.ParseTime(value)
	return at.Sub(now), err == nil
}

// readSeconds reads delay-seconds of RFC 9110: digits. However many there are, it is at most Longest.
func readSeconds(text string) (time.Duration, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > int64(Longest/time.Second) {
		return Longest, true
	}
	return time.Duration(n) * time.Second, true
}

// readLists returns the limits of RateLimit, with what RateLimit-Policy says of them; of a name that stands twice the one that leaves less. As the draft has it, a
// field is ignored as a whole if it is malformed.
func readLists(h http.Header) (states []State) {
	for _, m := range wholeList(h[rateLimit]) {
		l := limitOf(m)
		if l == nil {
			continue
		}
		s := State{Name: m.name, Partition: m.partition(), Remaining: l.remaining, Within: bounded(l.within)}
		if ms, _, ok := m.integer("weir-ms", 1); ok && s.Remaining == 0 && ms < s.Within.Milliseconds() {
			s.Within = time.Duration(ms) * time.Millisecond
		}
		switch i := slices.IndexFunc(states, func(o State) bool { return o.Name == s.Name && o.Partition == s.Partition }); {
		case i < 0:
			states = append(states, s)
		case s.Remaining < states[i].Remaining || s.Remaining == states[i].Remaining && s.Within > states[i].Within:
			states[i] = s
		}
	}
	if states == nil {
		return nil
	}
	for _, m := range wholeList(h[ratePolicy]) {
		if q := policyOf(m); q != nil {
			q.describe(states, m.name, m.partition())
		}
	}
	return states
}

// describe says of the limits of the name what their policy is: of those of the partition, or if it has none, of all. Of two policies the first is kept.
func (q *quota) describe(states []State, name, partition string) {
	for i := range states {
		if s := &states[i]; s.Name == name && s.Quota == 0 && (partition == "" || partition == s.Partition) {
			s.Quota, s.Window, s.Unit = q.count, bounded(q.period), q.unit
		}
	}
}

// partition returns the partition key, "" if there is none.
func (m *member) partition() string {
	value, _ := m.params.Get("pk")
	key, _ := value.([]byte)
	return string(key)
}

// wholeList reads the lines as the one list that they are.
func wholeList(lines []string) []member {
	if len(lines) == 0 {
		return nil
	}
	return members([]string{strings.Join(lines, ", ")})
}

func bounded(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(Longest/time.Second))) * time.Second
}

// year is where the seconds until a reset end and Unix times begin.
const year = 365 * 24 * 3600

func readX(h http.Header, prefix string, now time.Time) (State, bool) {
	remaining, err := strconv.ParseUint(h.Get(prefix+"Remaining"), 10, 63)
	if err != nil {
		return State{}, false
	}
	s := State{Remaining: int64(remaining)}
	if quota, err := strconv.ParseUint(h.Get(prefix+"Limit"), 10, 63); err == nil {
		s.Quota = int64(quota)
	}
	reset, err := strconv.ParseUint(h.Get(prefix+"Reset"), 10, 63)
	switch until := time.Unix(int64(reset), 0).Sub(now); {
	case err != nil:
	case reset <= year:
		s.Within = time.Duration(reset) * time.Second
	case until > 0 && until <= year*time.Second:
		s.Within = until
	}
	return s, true
}
