package operation

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// An Argument is an argument of an operation besides the key and the limit, or a set of arguments.
type Argument uint16

// The arguments, in the order in which errors list them.
const (
	Cost    Argument = 1 << iota // units
	At                           // the time of the call
	Name                         // of the limiter
	End                          // of a take: its time and its reset_after
	NS                           // times are in nanoseconds
	Time                         // the result has its time
	Debt                         // see store.Spec.TimeDebt
	ID                           // of a reservation
	Life                         // of a reservation
	Late                         // a commit without a reservation is charged
	And                          // another key and limit follow
	OnError                      // the decision while the store fails
)

// Words are the arguments in the Redis protocol, and Fields in JSON: "" where JSON has none.
var (
	Words  = [...]string{"COST n", "AT time", "NAME name", "END time", "NS", "TIME", "DEBT", "ID id", "LIFE time", "LATE", "AND key limit ...", "ONERROR deny|allow|local"}
	Fields = [...]string{"cost", "at_us", "name", "end_us", "", "", "", "id", "life_us", "late", "", "on_store_error"}
)

// HasValue reports whether a value follows the word of the argument.
func (a Argument) HasValue() bool { return a&(NS|Time|Debt|Late|And) == 0 }

// Texts returns the texts of a set of arguments, of Words or Fields.
func (a Argument) Texts(of []string) (list []string) {
	for i, text := range of {
		if a&(1<<i) != 0 && text != "" {
			list = append(list, text)
		}
	}
	return list
}

// Accepted describes the arguments in a set in the Redis protocol.
func (a Argument) Accepted() string {
	return strings.Join(append(a.Texts(Words[:]), "each once"), ", ")
}

// A Span is a range of whole numbers.
type Span struct{ Least, Most int64 }

// Has reports whether the span has a number.
func (s Span) Has(n int64) bool { return s.Least <= n && n <= s.Most }

// String describes the accepted numbers.
func (s Span) String() string {
	return "a whole number from " + strconv.FormatInt(s.Least, 10) + " to " + strconv.FormatInt(s.Most, 10)
}

const (
	// latestEnd is the latest time at which a key can be fresh again, in nanoseconds: limits reach 73 years beyond the last time.
	latestEnd = algorithm.MaxTime + 1<<61
	// longestLife is the longest life of a reservation.
	longestLife = 10 * 365 * 24 * time.Hour
	// mostSeconds bounds times so that no conversion of them overflows. A store refuses many of those within it too.
	mostSeconds = 1 << 40
)

// Span returns the numbers that the argument accepts, in a unit of time if it is a time. An ID must not be 0 besides.
func (a Argument) Span(unit time.Duration) Span {
	switch a {
	case Cost:
		return Span{0, math.MaxInt64}
	case At:
		if unit == time.Nanosecond {
			return Span{-math.MaxInt64, math.MaxInt64}
		}
		most := mostSeconds * int64(time.Second/unit)
		return Span{-most, most}
	case End:
		return Span{-latestEnd / int64(unit), latestEnd / int64(unit)}
	case Life:
		return Span{int64(time.Microsecond / unit), int64(longestLife / unit)}
	default:
		return Span{math.MinInt64, math.MaxInt64}
	}
}
