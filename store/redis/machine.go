package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A machine writes the arguments of the script for a limit, and reads and writes its states.
type machine struct {
	algorithm string // of the script: parse and apply in script/*.lua; "" if the script has none
	limit     algorithm.Limit
	kernel    kernel // of the linear family

	windows func(now int64) []int64 // of a calendar: the edges around a time
}

// Algorithms of the script that serve several, or have states of their own form.
const (
	linear         = "linear"
	slidingLog     = string(algorithm.SlidingLog)
	slidingBuckets = string(algorithm.SlidingBuckets)
	calendar       = string(algorithm.Calendar)
)

func newMachine(l algorithm.Limit) machine {
	l = l.Canonical()
	m := machine{algorithm: string(l.Algorithm), limit: l}
	switch l.Algorithm {
	case algorithm.FixedWindow, algorithm.QuotaReset, algorithm.RefillBucket, algorithm.SlidingWindow,
		algorithm.SlidingLog, algorithm.SlidingBuckets, algorithm.Calendar:
	case algorithm.Concurrent:
		m.algorithm = slidingLog
	default:
		m.algorithm = "" // rare and long: always a swap
		if l.Algorithm.Linear() {
			m.algorithm = linear
		}
	}
	return m
}

// wrap is the number at which sums in a list begin again.
const wrap = 1 << 52

// list reports whether the state is a list.
func (m *machine) list() bool { return m.algorithm == slidingLog || m.algorithm == slidingBuckets }

// A number of the script is exact up to 2^53, and so must a sum of two be.
const (
	maxUnits    = 1 << 51
	maxFraction = 1 << 52
)

// check refuses, as a *algorithm.LimitError, a limit whose numbers the script can't keep exactly.
func (m *machine) check() error {
	const accept = "1 to %d in Redis, whose numbers are exact to 53 bits"
	l := m.limit
	if m.algorithm == "" {
		return nil
	}
	for _, f := range []struct {
		name  string
		value int64
		most  int64
	}{{"burst", l.Burst, maxUnits}, {"queue", l.Queue, maxUnits - 1}, {"count", l.Count, m.maxCount()}} {
		if f.value > f.most {
			return &algorithm.LimitError{Field: f.name, Value: strconv.FormatInt(f.value, 10), Accept: fmt.Sprintf(accept, f.most)}
		}
	}
	return nil
}

// maxCount returns the largest count that the script keeps exactly. For limits whose unit takes a fraction of microseconds that
// depends on the denominator, which is at most a thousand times the count.
func (m *machine) maxCount() int64 {
	if m.kernel.Unit > maxFraction {
		return maxFraction / int64(time.Microsecond)
	}
	return maxUnits
}

// args appends the arguments of an operation, as script/*.lua list them for each algorithm. Times
// are those whose windows of a calendar the script needs.
func (m *machine) args(args []string, op algorithm.Op, heals bool, times []int64) []string {
	if m.algorithm == linear {
		return m.kernel.args(args, op, heals)
	}
	l, width := m.limit, strconv.FormatInt(m.limit.Period.Microseconds(), 10)
	count, cost := strconv.FormatInt(l.Count, 10), strconv.FormatInt(op.Cost, 10)
	switch m.algorithm {
	case string(algorithm.RefillBucket):
		return append(args, count, width, strconv.FormatInt(l.Burst, 10), cost)
	case calendar:
		edges := len(args) + 2
		args = append(args, count, cost, "")
		for _, t := range times {
			args = m.around(args, t)
		}
		args[edges] = strconv.Itoa(len(args) - edges - 1)
		return args
	}
	args = append(args, count, width, cost)
	if m.list() {
		args = append(args, strconv.FormatInt(l.Cells, 10))
	}
	if op.Kind == algorithm.Cancel || op.Kind == algorithm.Renew {
		args = append(args, strconv.FormatInt(op.End, 10))
	}
	return args
}

// around appends the windows of a calendar around a time: the beginning and the end of each.
func (m *machine) around(args []string, t int64) []string {
	edges := m.windows(t)
	for i := range len(edges) - 1 {
		args = append(args, strconv.FormatInt(edges[i], 10), strconv.FormatInt(edges[i+1], 10))
	}
	return args
}

// state reads a state as the script returns it.
func (m *machine) state(text string) ([]int64, error) {
	if text == "" {
		return nil, nil
	}
	state := make([]int64, 0, 4)
	for rest, more := text, true; more; {
		var word string
		word, rest, more = strings.Cut(rest, ":")
		n, err := strconv.ParseInt(word, 10, 64)
		if m.rate(len(state)) {
			var rate float64
			rate, err = strconv.ParseFloat(word, 64)
			n = int64(math.Float64bits(rate))
		}
		if err != nil {
			return nil, fmt.Errorf("redis: a state of %s is %.100q, which is none", m.limit, text)
		}
		state = append(state, n)
	}
	if m.algorithm == slidingBuckets {
		return m.ring(state), nil
	}
	return state, nil
}

// rate reports whether a word of a state is the rate of exponential: the bits of a float64, which is
// stored with 17 digits.
func (m *machine) rate(word int) bool { return word == 1 && m.limit.Algorithm == algorithm.Exponential }

// ring turns the newest cell, and pairs of a cell and its units, into the state of a program.
func (m *machine) ring(pairs []int64) []int64 {
	size := m.limit.Cells + 1
	state := make([]int64, size+1)
	state[0] = pairs[0]
	for i := 1; i+1 < len(pairs); i += 2 {
		slot := pairs[i] % size
		if slot < 0 {
			slot += size
		}
		state[1+slot] = pairs[i+1]
	}
	return state
}

// whole reads a stored state: of a list, its elements.
func (m *machine) whole(text string) ([]int64, error) {
	if text == "" || !m.list() {
		return m.state(text)
	}
	plain := machine{algorithm: slidingLog, limit: m.limit}
	list, err := plain.state(text)
	if err != nil {
		return nil, err
	}
	if len(list) < 4 || len(list)%2 != 0 {
		return nil, fmt.Errorf("redis: a state of %s is %.100q, which is none", m.limit, text)
	}
	var state []int64
	if m.algorithm == slidingBuckets {
		state = append(state, list[len(list)-2])
	}
	for i := 2; i+1 < len(list); i += 2 {
		state = append(state, list[i], (list[i+1]-list[i-1]+wrap)%wrap)
	}
	if m.algorithm == slidingBuckets {
		return m.ring(state), nil
	}
	return state, nil
}

// text is what state reads.
func (m *machine) text(state []int64) string {
	var b []byte
	for i, word := range m.pairs(state) {
		if i > 0 {
			b = append(b, ':')
		}
		if m.rate(i) {
			b = strconv.AppendFloat(b, math.Float64frombits(uint64(word)), 'g', 17, 64)
		} else {
			b = strconv.AppendInt(b, word, 10)
		}
	}
	return string(b)
}

// pairs turns the state of cells into the newest cell, and pairs of a cell and its units. Other states are as they are.
func (m *machine) pairs(state []int64) []int64 {
	if m.algorithm != slidingBuckets || len(state) == 0 {
		return state
	}
	size, newest := m.limit.Cells+1, state[0]
	pairs := []int64{newest}
	for i := newest - m.limit.Cells; i <= newest; i++ {
		slot := (i%size + size) % size
		if units := state[1+slot]; units > 0 || i == newest {
			pairs = append(pairs, i, units)
		}
	}
	return pairs
}

// elements returns what follows the first element of a list, each on a line of its own.
func (m *machine) elements(state []int64) string {
	pairs := m.pairs(state)
	if m.algorithm == slidingBuckets {
		pairs = pairs[1:]
	}
	var b []byte
	sum := int64(0)
	for i := 0; i+1 < len(pairs); i += 2 {
		sum = (sum + pairs[i+1]) % wrap
		b = strconv.AppendInt(append(b, '\n'), pairs[i], 10)
		b = strconv.AppendInt(append(b, ':'), sum, 10)
	}
	return string(b)
}
