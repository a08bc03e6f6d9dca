package algorithm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds the heads that ReadHead looks at: that of MaxHolds reservations, and of formers of MaxCells, is shorter.
const maxHead = 512 << 10

// Head returns what stores keep of a program's plain accounts beside the state: the limit's text.
func (p *Program) Head() string { return p.text }

// Head returns all of an account but its state, as text that ReadHead reads back: the limit, and each part of an Extra after a semicolon.
//
//	100/1m;was=50/1m|0|1700000060000000|1700000000000000;owed=3,1700000000000000;hold=7,10,1700000000000000,1700000006000000,90,1700000060000000
//
// A former is its limit, the units that it missed, when it is forgotten, and its state; what is owed has the time up to which it was looked for room; a hold has
// the fields of a [Hold] in their order. Times are ticks. A plain account's head is its Program's; that of a key never seen is empty.
func (a Account) Head() string {
	if a.Program == nil {
		return ""
	}
	x := a.Extra
	if x == nil {
		return a.Program.text
	}
	b := []byte(a.Program.text)
	for _, f := range x.Formers {
		b = append(append(append(b, ";was="...), f.Program.text...), '|')
		b = append(strconv.AppendInt(b, f.Missed, 10), '|')
		b = append(strconv.AppendInt(b, f.Until, 10), '|')
		b = appendInts(b, f.State...)
	}
	if x.Owed > 0 {
		b = appendInts(append(b, ";owed="...), x.Owed, x.Since)
	}
	for _, h := range x.Holds {
		b = appendInts(append(b, ";hold="...), h.ID, h.Units, h.At, h.End, h.Left, h.Expires)
	}
	return string(b)
}

func appendInts(b []byte, list ...int64) []byte {
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return b
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
	a := Account{State: state}
	var err error
	if a.Program, err = p.sibling(text); err == nil && more {
		a.Extra, err = p.readExtra(rest)
	}
	if err != nil {
		return Account{}, fmt.Errorf("weir: the head of a state is %.100q: %w", head, err)
	}
	if x := a.Extra; x != nil && x.Owed > a.Program.mostOwed() {
		return Account{}, fmt.Errorf("weir: the head of a state is %.100q: owed is %d; accepted: up to %d of %v", head, x.Owed, a.Program.mostOwed(), a.Program.limit)
	}
	return a, a.Check()
}

// sibling returns the program of another limit in the same ticks.
func (p *Program) sibling(text string) (*Program, error) {
	if text == p.text {
		return p, nil
	}
	limit, err := ParseLimit(text)
	if err != nil {
		return nil, err
	}
	return Compile(limit, time.Duration(p.tick))
}

func (p *Program) readExtra(text string) (*Extra, error) {
	var x Extra
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		switch {
		case name == "was" && len(x.Formers) < MaxFormers:
			var f Former
			f, err = p.readFormer(value)
			x.Formers = append(x.Formers, f)
		case name == "owed" && x.Owed == 0:
			x.Owed, x.Since, err = p.readOwed(value)
		case name == "hold" && len(x.Holds) < MaxHolds:
			var h Hold
			h, err = p.readHold(value, x.Holds)
			x.Holds = append(x.Holds, h)
		default:
			err = fmt.Errorf("%.100q; accepted: up to %d of was, owed once, and up to %d of hold", part, MaxFormers, MaxHolds)
		}
		if err != nil {
			return nil, err
		}
	}
	return &x, nil
}

func (p *Program) readOwed(text string) (owed, since int64, err error) {
	err = readInts(text, &owed, &since)
	if err == nil && (owed < 1 || !p.reaches(since)) {
		err = fmt.Errorf("owed is %.100q; accepted: units of 1 or more, and a time", text)
	}
	return owed, since, err
}

func (p *Program) readFormer(text string) (f Former, err error) {
	words := strings.Split(text, "|")
	if len(words) != 4 {
		return f, fmt.Errorf("was is %.100q; accepted: a limit, the units that it missed, a time, and its state, apart by |", text)
	}
	if f.Program, err = p.sibling(words[0]); err != nil {
		return f, err
	}
	if err = errors.Join(readInts(words[1], &f.Missed), readInts(words[2], &f.Until)); err != nil || f.Missed < 0 || !p.reaches(f.Until) {
		return f, fmt.Errorf("was is %.100q; accepted: 0 or more units that it missed, and a time", text)
	}
	if words[3] == "" { // one whose units were all given back
		return f, nil
	}
	f.State = make([]int64, 1+strings.Count(words[3], ","))
	to := make([]*int64, len(f.State))
	for i := range to {
		to[i] = &f.State[i]
	}
	return f, readInts(words[3], to...)
}

// readHold reads a hold that comes after others.
func (p *Program) readHold(text string, before []Hold) (h Hold, err error) {
	err = readInts(text, &h.ID, &h.Units, &h.At, &h.End, &h.Left, &h.Expires)
	switch {
	case err != nil:
	case h.Units < 0 || h.Left < 0 || !p.reaches(h.At) || !p.reaches(h.Expires) || !within(h.End-h.At, 2*maxSpan/p.tick):
		err = fmt.Errorf("hold is %.100q; accepted: an ID, units, two times, units, and a time", text)
	case len(before) > 0 && before[len(before)-1].Expires > h.Expires:
		err = fmt.Errorf("hold is %.100q; accepted: holds in the order in which they expire", text)
	}
	return h, err
}

// reaches reports whether a time is one that an account can have.
func (p *Program) reaches(t int64) bool { return within(t, (MaxTime+maxSpan)/p.tick) }

func readInts(text string, to ...*int64) error {
	words := strings.Split(text, ",")
	bad := len(words) != len(to)
	for i := 0; i < len(to) && !bad; i++ {
		var err error
		*to[i], err = strconv.ParseInt(words[i], 10, 64)
		bad = err != nil
	}
	if bad {
		return fmt.Errorf("%.100q; accepted: %d whole numbers", text, len(to))
	}
	return nil
}
