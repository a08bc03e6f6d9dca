package resp

import (
	"math"
	"strconv"
)

// parseInt reads a whole number of 64 bits: digits, after a minus sign or not.
func parseInt(text []byte) (n int64, ok bool) {
	digits, negative := text, false
	if len(text) > 0 && text[0] == '-' {
		digits, negative = text[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var sum uint64 // 19 digits fit
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		sum = sum*10 + uint64(c)
	}
	switch {
	case negative && sum <= -math.MinInt64:
		return int64(-sum), true
	case !negative && sum <= math.MaxInt64:
		return int64(sum), true
	}
	return 0, false
}

// A span is a range of numbers that an argument accepts.
type span struct{ least, most int64 }

// refusal says which argument makes no sense, what it was, and what would be accepted.
func (s span) refusal(name string, value []byte) string {
	return "ERR " + name + " is " + excerpt(value) + "; accepted: a whole number from " +
		strconv.FormatInt(s.least, 10) + " to " + strconv.FormatInt(s.most, 10)
}

// excerpt quotes what a client sent, as far as it is short.
func excerpt(b []byte) string {
	if len(b) > 64 {
		return strconv.Quote(string(b[:64])) + "..."
	}
	return strconv.Quote(string(b))
}
