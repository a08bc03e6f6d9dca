package redis

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A machine tells the script about a limit, and reads the states that it returns.
type machine struct {
	letter byte // of its file of the script
	limit  algorithm.Limit
	kernel kernel // of the linear family, and of hybrid
	span   int64  // of a log: the position of a unit, plus this, is where it no longer counts

	windows func(now int64) []int64 // of a calendar: the edges around a time
}

func newMachine(spec store.Spec) machine {
	l := spec.Limit.Canonical()
	m := machine{letter: 'l', limit: l}
	switch l.Algorithm {
	case algorithm.FixedWindow:
		m.letter = 'f'
	case algorithm.QuotaReset:
		m.letter = 'q'
	case algorithm.RefillBucket:
		m.letter = 'b'
	case algorithm.SlidingWindow:
		m.letter = 'w'
	case algorithm.Calendar:
		m.letter = 'd'
	case algorithm.SlidingLog, algorithm.Concurrent:
		m.letter, m.span = 'g', int64(l.Period)/tick
	case algorithm.SlidingBuckets:
		m.letter, m.span = 'c', l.Cells+1
	case algorithm.Exponential:
		m.letter = 'e'
	case algorithm.Hybrid:
		m.letter = 'h'
		m.kernel = newKernel(algorithm.Limit{Algorithm: algorithm.GCRA, Count: l.Count, Period: l.Period, Burst: l.Count}, false)
	default:
		m.kernel = newKernel(l, spec.TimeDebt)
	}
	return m
}

// wrap is the number at which sums in a list begin again.
const wrap = 1 << 52

// list reports whether the state is a list.
func (m *machine) list() bool { return m.letter == 'g' || m.letter == 'c' }

// A number of the script is exact up to 2^53, and so must a sum of two be.
const (
	maxUnits    = 1 << 51
	maxFraction = 1 << 52
)

// check refuses, as a *algorithm.LimitError, a limit whose numbers the script can't keep exactly.
func (m *machine) check() error {
	const accept = "1 to %d in Redis, whose numbers are exact to 53 bits"
	l := m.limit
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
	switch {
	case m.limit.Algorithm == algorithm.Exponential:
		return algorithm.MaxRateCount
	case m.kernel.unit > maxFraction:
		return maxFraction / tick
	}
	return maxUnits
}

// args appends what the script's file reads of an operation that is no peek, and of a calendar the windows of some times.
func (m *machine) args(args []string, op algorithm.Op, heals bool, times []int64) []string {
	l, width := m.limit, strconv.FormatInt(int64(m.limit.Period)/tick, 10)
	count, cost := strconv.FormatInt(l.Count, 10), strconv.FormatInt(op.Cost, 10)
	switch m.letter {
	case 'l':
		return m.kernel.args(args, op, heals)
	case 'h':
		rest := m.kernel.times(l.Count - 1)
		args = append(args, count, width, decimal(rest.ticks), decimal(rest.rem), flag(heals), cost)
		return m.kernel.args(args, op, false)
	case 'b':
		return append(args, count, width, strconv.FormatInt(l.Burst, 10), flag(heals), cost)
	case 'e':
		return append(args, count, width, flag(l.Strict), flag(heals), cost)
	case 'd':
		first := len(args) + 4
		args = append(args, count, flag(heals), cost, "")
		for _, t := range times {
			args = m.around(args, t)
		}
		args[first-1] = strconv.Itoa(len(args) - first)
		return args
	case 'g', 'c':
		args = append(args, count, strconv.FormatInt(m.span, 10), flag(heals), cost, width, strconv.FormatInt(l.Cells, 10))
	default:
		args = append(args, count, width, flag(heals), cost)
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
		if err != nil && m.letter == 'e' && len(state) == 1 {
			var rate float64
			rate, err = strconv.ParseFloat(word, 64)
			n = int64(math.Float64bits(rate))
		} else if m.letter == 'e' && len(state) == 1 {
			n = int64(math.Float64bits(float64(n)))
		}
		if err != nil {
			return nil, fmt.Errorf("redis: a state of %s is %.100q, which is none", m.limit, text)
		}
		state = append(state, n)
	}
	if m.letter == 'c' {
		return m.ring(state), nil
	}
	return state, nil
}

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

// whole reads a state as a peek at all of it returns it: of a list, the elements.
func (m *machine) whole(text string) ([]int64, error) {
	if text == "" || !m.list() {
		return m.state(text)
	}
	plain := machine{letter: 'g', limit: m.limit}
	list, err := plain.state(text)
	if err != nil {
		return nil, err
	}
	if len(list) < 4 || len(list)%2 != 0 {
		return nil, fmt.Errorf("redis: a state of %s is %.100q, which is none", m.limit, text)
	}
	var state []int64
	if m.letter == 'c' {
		state = append(state, list[len(list)-2])
	}
	for i := 2; i+1 < len(list); i += 2 {
		state = append(state, list[i], (list[i+1]-list[i-1]+wrap)%wrap)
	}
	if m.letter == 'c' {
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
		if m.letter == 'e' && i == 1 {
			b = strconv.AppendFloat(b, math.Float64frombits(uint64(word)), 'g', 17, 64)
		} else {
			b = strconv.AppendInt(b, word, 10)
		}
	}
	return string(b)
}

// pairs turns the state of cells into the newest cell, and pairs of a cell and its units. Other states are as they are.
func (m *machine) pairs(state []int64) []int64 {
	if m.letter != 'c' || len(state) == 0 {
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
	if m.letter == 'c' {
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
