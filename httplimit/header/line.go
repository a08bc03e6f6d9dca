package header

import (
	"math/bits"
	"strconv"
	"time"

	"github.com/weirlimit/weir"
)

// A Line is how RateLimit-Policy and RateLimit tell of one limit: what of it stays the same is made once, by [Of].
type Line struct {
	policy string // the member of RateLimit-Policy
	head   string // the member of RateLimit, up to the number of what remains
	window window
}

// Of returns the Line of a limit by the name that clients are told. Bytes that such a name can't have are written as in URLs: %C3%A9.
func Of(name string, limit weir.Limit) *Line {
	limit = limit.Canonical()
	return &Line{string(appendPolicy(nil, name, &limit)), string(appendHead(nil, name)), windowOf(&limit)}
}

// Policy returns the member of RateLimit-Policy: the name, the count, and the period if that is of whole seconds. It does not change.
func (l *Line) Policy() string { return l.policy }

// Append appends the member of RateLimit: the name, what remains, and for how many seconds that is. If nothing remains of a limit of two a second or more, and something comes
// back within the second, it says besides in how many milliseconds, as weir-ms: to wait a second for it would leave most of a limit unused of which little can be saved up. It does not allocate if dst has room for
// [Line.Size] bytes.
func (l *Line) Append(dst []byte, d *weir.Decision) []byte {
	return l.window.append(append(dst, l.head...), d)
}

// Size returns how many bytes Append appends at most.
func (l *Line) Size() int {
	return len(l.head) + max(len("999999999999999;t=999999999999999"), len("0;t=1;weir-ms=500"))
}

// appendPolicy appends the member of RateLimit-Policy of a limit in canonical form.
func appendPolicy(dst []byte, name string, limit *weir.Limit) []byte {
	dst = append(appendString(dst, name), ";q="...)
	dst = appendInteger(dst, limit.Count)
	switch {
	case limit.Algorithm == weir.Concurrent:
		return append(dst, `;qu="concurrent-requests"`...)
	case limit.Period > 0 && limit.Period%time.Second == 0:
		return appendInteger(append(dst, ";w="...), int64(limit.Period/time.Second))
	}
	return dst
}

func appendHead(dst []byte, name string) []byte { return append(appendString(dst, name), ";r="...) }

// appendString appends a String of RFC 9651.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, c := range []byte(wireName(s)) {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// wireName returns the name with what a String can't have as in URLs.
func wireName(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return escape(s)
		}
	}
	return s
}

func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b []byte
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			b = append(b, '%', hex[c>>4], hex[c&15])
			continue
		}
		b = append(b, c)
	}
	return string(b)
}

// most is the largest Integer of RFC 9651.
const most = 999_999_999_999_999

// appendInteger appends an Integer of RFC 9651 that is not negative.
func appendInteger(dst []byte, n int64) []byte {
	return strconv.AppendInt(dst, min(max(n, 0), most), 10)
}

// A window says for how long what remains of a limit must do. It keeps what that takes to know.
type window struct {
	family        family
	count, period uint64 // the interval between units is period/count nanoseconds
	others        uint64 // the capacity but one
}

// A family is the algorithms of which windows are told in one way.
type family uint8

const (
	linear  family = iota // units come back one by one, evenly
	refill                // many at once, and more of them can be there than come back in a period
	rolling               // within a period
	grid                  // when the window ends
	held                  // when who has them gives them back
)

func windowOf(limit *weir.Limit) window {
	w := window{
		family: rolling, count: uint64(max(limit.Count, 1)), period: uint64(max(limit.Period, 0)),
		others: uint64(max(limit.Capacity(), 1) - 1),
	}
	switch limit.Algorithm {
	case weir.Concurrent:
		w.family = held
	case weir.RefillBucket:
		w.family = refill
	case weir.FixedWindow, weir.QuotaReset, weir.Calendar:
		w.family = grid
	case weir.SlidingBuckets: // the next unit comes back a cell later at most
		w.period += w.period/uint64(max(limit.Cells, 1)) + 1
	case weir.SlidingWindow: // when a part of the window before this one is over
		w.period += w.period/w.count + 1
	default:
		if limit.Algorithm.Linear() {
			w.family = linear
		}
	}
	return w
}

// append appends what remains, and for how long that is.
func (w *window) append(dst []byte, d *weir.Decision) []byte {
	dst = appendInteger(dst, d.Remaining)
	within, limited := w.within(d)
	if !limited {
		return dst
	}
	dst = appendInteger(append(dst, ";t="...), seconds(within))
	if d.Remaining <= 0 && within > 0 && within <= time.Second-time.Millisecond && w.period/w.count <= soon {
		dst = appendInteger(append(dst, ";weir-ms="...), int64((within-1)/time.Millisecond)+1)
	}
	return dst
}

// soon is how long a unit may take to come back, in nanoseconds, of a limit that says so as weir-ms. If it takes longer, a whole second is less than twice as long.
const soon = uint64(time.Second / 2)

// seconds returns the effective window in whole seconds, at least 1. It is 0 if there is none.
func (w *window) seconds(d *weir.Decision) int64 {
	within, limited := w.within(d)
	if !limited {
		return 0
	}
	return seconds(within)
}

// within returns the effective window, in which no more than what remains can be used. It is not limited if what is held comes back when work ends, or if what costs more
// than the capacity never passes.
func (w *window) within(d *weir.Decision) (within time.Duration, limited bool) {
	switch {
	case w.family == held || d.RetryAfter == weir.Never:
		return 0, false
	case !d.Allowed:
		return d.RetryAfter, true
	}
	switch w.family {
	case linear:
		if d.Remaining > 0 {
			return w.span(uint64(d.Remaining)), true
		}
		return d.ResetAfter - w.span(w.others), true // until the next unit
	case refill:
		return max(w.span(uint64(max(d.Remaining, 0))), min(d.ResetAfter, time.Duration(w.period))), true
	case rolling:
		return min(d.ResetAfter, time.Duration(w.period)), true
	}
	return d.ResetAfter, true
}

// span returns how long it takes until n units came back, rounded up, at most the longest Duration.
func (w *window) span(n uint64) time.Duration {
	hi, lo := bits.Mul64(n, w.period)
	if hi >= w.count {
		return weir.Never
	}
	ns, rem := bits.Div64(hi, lo, w.count)
	if rem > 0 {
		ns++
	}
	return time.Duration(min(ns, uint64(weir.Never)))
}

// seconds returns whole seconds, rounded up, at least 1.
func seconds(d time.Duration) int64 {
	if d <= time.Second {
		return 1
	}
	return int64((d-1)/time.Second) + 1
}
