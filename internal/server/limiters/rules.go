package limiters

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
)

// Rules restrict the limits in requests. The zero value accepts all limits.
type Rules struct {
	// MaxPeriod is the longest period, and the longest time in which a burst or queue of a limit
	// comes back: for so long a request can keep the memory of a key. 0 means no bound.
	MaxPeriod time.Duration
	// Limits, if Listed, are the only accepted limits. An empty list refuses all limits.
	Limits []algorithm.Limit
	Listed bool
}

// mostListed is how many limits the error lists.
const mostListed = 10

// check returns a *weir.LimitError for a limit against the rules.
func (r Rules) check(l algorithm.Limit) error {
	l = l.Canonical()
	same := func(other algorithm.Limit) bool { return other.Canonical() == l }
	switch {
	case r.Listed && !slices.ContainsFunc(r.Limits, same):
		return &weir.LimitError{Field: "text", Value: strconv.Quote(l.String()), Accept: r.accepted()}
	case r.MaxPeriod > 0 && l.Period > r.MaxPeriod:
		field := "period"
		if l.Algorithm == weir.Concurrent {
			field = "lease"
		}
		return &weir.LimitError{Field: field, Value: l.Period.String(), Accept: "up to " + r.longest()}
	case r.MaxPeriod > 0 && longer(l, r.MaxPeriod):
		field := "burst"
		if l.Algorithm == weir.LeakyQueue {
			field = "queue"
		}
		return &weir.LimitError{Field: field, Value: strconv.FormatInt(l.Capacity(), 10), Accept: "what comes back within " + r.longest()}
	}
	return nil
}

// longer reports whether the capacity of a limit takes longer than this to come back.
func longer(l algorithm.Limit, most time.Duration) bool {
	hi, lo := bits.Mul64(uint64(l.Capacity()), uint64(l.Period))
	mostHi, mostLo := bits.Mul64(uint64(l.Count), uint64(most))
	return hi > mostHi || hi == mostHi && lo > mostLo
}

func (r Rules) longest() string {
	return r.MaxPeriod.String() + " where a request names the limit (--max-period)"
}

func (r Rules) accepted() string {
	if len(r.Limits) == 0 {
		return "no limit that a request names (--allow-limits off), only those of policies"
	}
	var texts []string
	for _, l := range r.Limits[:min(mostListed, len(r.Limits))] {
		texts = append(texts, l.String())
	}
	if more := len(r.Limits) - mostListed; more > 0 {
		texts = append(texts, fmt.Sprintf("or %d others", more))
	}
	return strings.Join(texts, ", ") + " (--allow-limits)"
}
