package algorithm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds the heads that ReadHead looks at: that of MaxHolds reservations is shorter.
const maxHead = 256 << 10

// Head returns what stores keep of a program's plain accounts beside the state: the limit's text.
func (p *Program) Head() string { return p.text }

// Head returns all of an account but its state, as text that ReadHead reads back: the limit, and each part of an Extra after a semicolon.
//
//	100/1m;over=5@1700000000000000;owed=3@1700000000000000;hold=7,10,1700000000000000,1700000006000000,90,1700000060000000
//
// The times are ticks. A plain account's is its Program's; that of a key never seen is empty.
func (a Account) Head() string {
	if a.Program == nil {
		return ""
	}
	x := a.Extra
	if x == nil {
		return a.Program.text
	}
	b := []byte(a.Program.text)
	pair := func(name string, units, at int64) {
		if units > 0 {
			b = strconv.AppendInt(append(b, name...), units, 10)
			b = strconv.AppendInt(append(b, '@'), at, 10)
		}
	}
	pair(";over=", x.Over, x.Until)
	pair(";owed=", x.Owed, x.Since)
	for _, h := range x.Holds {
		b = append(b, ";hold="...)
		for i, n := range []int64{h.ID, h.Units, h.At, h.End, h.Left, h.Expires} {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, n, 10)
		}
	}
	return string(b)
}

// ReadHead returns the account of a head and a state. What is no head is an error, and so is a state that the limit does not make.
// p is the program of who asks: if it is that of the head, it is the account's.
func ReadHead(p *Program, head string, state []int64) (Account, error) {
	if len(head) == 0 && len(state) == 0 {
		return Account{}, nil
	}
	if len(head) > maxHead {
		return Account{}, fmt.Errorf("weir: the head of a state has %d bytes; accepted: up to %d", len(head), maxHead)
	}
	text, rest, more := strings.Cut(head, ";")
	a := Account{Program: p, State: state}
	if text != p.text {
		limit, err := ParseLimit(text)
		if err == nil {
			a.Program, err = Compile(limit, time.Duration(p.tick))
		}
		if err != nil {
			return Account{}, fmt.Errorf("weir: the head of a state is %.100q: %w", head, err)
		}
	}
	if more {
		x, err := readExtra(rest)
		if err != nil {
			return Account{}, fmt.Errorf("weir: the head of a state is %.100q: %w", head, err)
		}
		a.Extra = x
	}
	return a, a.Check()
}

func readExtra(text string) (*Extra, error) {
	var x Extra
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch {
		case name == "over" && x.Over == 0:
			x.Over, x.Until, err = readPair(value)
		case name == "owed" && x.Owed == 0:
			x.Owed, x.Since, err = readPair(value)
		case name == "hold" && len(x.Holds) < MaxHolds:
			var h Hold
			err = readInts(value, ",", &h.ID, &h.Units, &h.At, &h.End, &h.Left, &h.Expires)
			if err == nil && (h.Units < 0 || h.Left < 0 || !sane(h.At, h.End, h.Expires) || len(x.Holds) > 0 && x.Holds[len(x.Holds)-1].Expires > h.Expires) {
				err = fmt.Errorf("hold is %.100q; accepted: units of 0 or more, in the order in which they expire", value)
			}
			x.Holds = append(x.Holds, h)
		default:
			err = fmt.Errorf("%.100q; accepted: over, owed, each once, and up to %d of hold", part, MaxHolds)
		}
		if err != nil {
			return nil, err
		}
	}
	return &x, nil
}

func readPair(text string) (units, at int64, err error) {
	err = readInts(text, "@", &units, &at)
	if err == nil && (units < 1 || !sane(at)) {
		err = fmt.Errorf("%.100q; accepted: units of 1 or more, and a time", text)
	}
	return units, at, err
}

// sane reports whether times are such that sums and differences of them do not overflow.
func sane(times ...int64) bool {
	for _, t := range times {
		if t > 2*maxSpan-1 || t < -(2*maxSpan-1) {
			return false
		}
	}
	return true
}

func readInts(text, separator string, to ...*int64) (err error) {
	words := strings.Split(text, separator)
	if len(words) != len(to) {
		return fmt.Errorf("%.100q; accepted: %d whole numbers", text, len(to))
	}
	for i, word := range words {
		if *to[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return fmt.Errorf("%.100q; accepted: %d whole numbers", text, len(to))
		}
	}
	return nil
}
