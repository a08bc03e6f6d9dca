package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store/swap"
)

// Values as the script returns them, see swap.lua: "" for none, 's' and a string, 'l' and the elements of
// a list, one on a line, or 'x' for another type.
//
// A record with a head is 'head|state'. If the state is a list, 'head|' is before its first element. A
// record with more than a state, such as reservations, is always a string, with the positions and the
// units of all entries; the script leaves it alone.

var (
	errNoHead = errors.New("it does not begin with the text of a limit and a |")
	errType   = errors.New("it is no string, and no list")
)

// A limit is a limit prepared for the script.
type limit struct {
	program  *algorithm.Program
	machine  machine
	accounts bool
	head     string   // beginning of the value of a record with nothing but a state of the limit; "" without accounts
	healing  bool     // states are healed by the server's time
	one      []string // arguments of a linear take of one unit by the server's clock
}

func compiled(k swap.Key) *limit { return k.Limit.Compiled.(*limit) } //nolint:forcetypeassert // it is Compile's

// machineOf returns the machine of the limit in a head, and whether a list can be its state.
func (l *limit) machineOf(head string) (m *machine, list bool, err error) {
	text, _, more := strings.Cut(head, ";")
	if text == l.program.Head() || !l.accounts {
		return &l.machine, l.machine.list() && !more, nil
	}
	other, err := algorithm.ParseLimit(text)
	if err != nil {
		return nil, false, err
	}
	made := newMachine(other)
	return &made, made.list() && !more, nil
}

// record reads a value.
func (l *limit) record(value string) (r swap.Record, err error) {
	if value == "" {
		return r, nil
	}
	kind, first, rest := value[0], value[1:], ""
	if kind == 'x' {
		return r, errType
	}
	if kind == 'l' {
		first, rest, _ = strings.Cut(first, "\n")
	}
	if l.accounts {
		i := strings.LastIndexByte(first, '|')
		if i < 1 {
			return r, errNoHead
		}
		r.Head, first = first[:i], first[i+1:]
	}
	m, list, err := l.machineOf(r.Head)
	if err != nil {
		return r, err
	}
	if list != (kind == 'l') {
		return r, fmt.Errorf("it is of another type than a state of %s", m.limit)
	}
	if list {
		r.State, err = m.whole(first + ":" + strings.ReplaceAll(rest, "\n", ":"))
		return r, err
	}
	if r.State, err = m.state(first); err != nil {
		return r, err
	}
	plain := !strings.Contains(r.Head, ";")
	if plain && len(r.State) == 0 || m.algorithm == slidingBuckets && m.text(r.State) != first {
		err = fmt.Errorf("%.100q is no state of %s", first, m.limit)
	}
	return r, err
}

// value returns a record as the script expects it.
func (l *limit) value(r swap.Record) (string, error) {
	if r.Empty() {
		return "", nil
	}
	m, list, err := l.machineOf(r.Head)
	if err != nil {
		return "", err
	}
	head := ""
	if l.accounts {
		head = r.Head + "|"
	}
	if list {
		return "l" + head + "0:0" + m.elements(r.State), nil
	}
	return "s" + head + m.text(r.State), nil
}
