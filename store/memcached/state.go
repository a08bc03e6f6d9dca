package memcached

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/weirlimit/weir/store/swap"
)

// logEntry is the most bytes of a state's text that a sliding log needs for a unit: 17 for the time, 1 for the unit, 2 colons.
// Units that share an entry need fewer.
const logEntry = 20

// formatRecord writes a state as integers with colons between them, so that people can read it, and before it the head, if there is one, with a
// bar behind it.
func formatRecord(r swap.Record) []byte {
	text := make([]byte, 0, len(r.Head)+1+20*len(r.State))
	if r.Head != "" {
		text = append(append(text, r.Head...), '|')
	}
	for i, word := range r.State {
		if i > 0 {
			text = append(text, ':')
		}
		text = strconv.AppendInt(text, word, 10)
	}
	return text
}

func parseRecord(text []byte) (r swap.Record, err error) {
	words := text
	if i := bytes.LastIndexByte(text, '|'); i > 0 { // a head may have bars, a state has none
		r.Head, words = string(text[:i]), text[i+1:]
	}
	if r.State, err = parseState(words); err != nil {
		return swap.Record{}, fmt.Errorf("there is %.50q; accepted: integers with colons between them, "+
			"or a limit, a bar, and these", text)
	}
	return r, nil
}

func parseState(text []byte) ([]int64, error) {
	if len(text) == 0 {
		return nil, nil
	}
	state := make([]int64, 0, 1+bytes.Count(text, []byte{':'}))
	for word := range bytes.SplitSeq(text, []byte{':'}) {
		n, err := strconv.ParseInt(string(word), 10, 64)
		if err != nil {
			return nil, err
		}
		state = append(state, n)
	}
	return state, nil
}

// longestRelative is the longest expiration, in seconds, that memcached takes as one from now on. Longer ones are seconds since the
// Unix epoch.
const longestRelative = 30 * 24 * 60 * 60

// expiration returns when an item may be forgotten: after its life, in whole seconds, and one more, because memcached counts
// them by a clock that ticks once a second: an item with an expiration of one may expire at once.
//
// The client has 32 bits for it, which end in January of 2038. States that should live beyond are kept until then, or for 30 days.
func expiration(now time.Time, life time.Duration) int32 {
	seconds := int64((life-1)/time.Second) + 2
	if seconds <= longestRelative {
		return int32(seconds)
	}
	at := min(now.Unix()+1+seconds, math.MaxInt32)
	if at-now.Unix() <= longestRelative {
		return longestRelative
	}
	return int32(at)
}
