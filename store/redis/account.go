package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// Values as the script tells them, see swap.lua: "" for nothing, 's' and a string, 'l' and the elements of a list, one on a line, or 'x' for something else.
//
// An account is 'head|state', where head is that of algorithm.Account. A plain one whose state is a list has 'head|' before its first
// element. If it is more than a state it is a string also then, with the positions and the units of all entries, and the script leaves it alone.

var (
	errNoHead = errors.New("it does not begin with the text of a limit and a |")
	errOther  = errors.New("it is no string, and no list")
)

// account reads a value of the binding's.
func (b *binding) account(value string) (a algorithm.Account, err error) {
	if value == "" {
		return algorithm.Account{}, nil
	}
	kind, first, rest := value[0], value[1:], ""
	if kind == 'x' {
		return a, errOther
	}
	if kind == 'l' {
		first, rest, _ = strings.Cut(first, "\n")
	}
	a = algorithm.Account{Program: b.program}
	if b.accounts {
		i := strings.LastIndexByte(first, '|')
		if i < 1 {
			return a, errNoHead
		}
		if a, err = algorithm.ReadHead(b.program, first[:i], nil); err != nil {
			return a, err
		}
		first = first[i+1:]
	}
	m := b.machineOf(a)
	if list := m.list() && a.Extra == nil; list != (kind == 'l') {
		return a, fmt.Errorf("it is of another type than a state of %s", m.limit)
	} else if list {
		a.State, err = m.whole(first + ":" + strings.ReplaceAll(rest, "\n", ":"))
	} else {
		a.State, err = m.state(first)
	}
	switch {
	case err != nil:
		return a, err
	case a.Extra == nil && len(a.State) == 0, m.algorithm == slidingBuckets && kind == 's' && m.text(a.State) != first:
		return a, fmt.Errorf("%.100q is no state of %s", first, m.limit)
	}
	return a, a.Check()
}

// machineOf returns the machine of an account's limit.
func (b *binding) machineOf(a algorithm.Account) *machine {
	if a.Program == b.program {
		return &b.machine
	}
	m := newMachine(store.Spec{Limit: a.Program.Limit()})
	return &m
}

// value returns an account as the script is told it.
func (b *binding) value(a algorithm.Account) string {
	if a.Program == nil || len(a.State) == 0 && a.Extra == nil {
		return ""
	}
	m, head := b.machineOf(a), ""
	if b.accounts {
		head = a.Head() + "|"
	}
	if m.list() && a.Extra == nil {
		return "l" + head + "0:0" + m.elements(a.State)
	}
	return "s" + head + m.text(a.State)
}

// plain reports whether an account is for the script.
func (b *binding) plain(a algorithm.Account) bool {
	if a.Extra != nil {
		return false
	}
	return a.Program == nil || len(a.State) == 0 || a.Program == b.program || a.Program.Head() == b.program.Head()
}

// same reports whether two accounts are kept the same.
func same(a, b algorithm.Account) bool {
	return slices.Equal(a.State, b.State) && a.Head() == b.Head()
}
