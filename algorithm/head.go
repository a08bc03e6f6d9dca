package algorithm

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxHead bounds the heads that ReadHead reads: that of MaxHolds reservations is shorter.
const maxHead = 512 << 10

// Head returns what stores keep of a program's plain accounts beside the state: the limit's text.
func (p *Program) Head() string { return p.text }

// Head returns all of an account but its state, as text that ReadHead reads back: the limit, and each part of an Extra after a semicolon.
//
//	100/1m;owed=3,1700000000000000;hold=7,10,1700000000000000,1700000006000000,90,1700000060000000
//
// The debt has the time up to which it was paid; lease is [Extra.Lease]; a hold has the fields of a [Hold] in their order.
// Times are ticks. A plain account's head is its Program's; that of a key never seen is empty.
func (a Account) Head() string {
	if a.Program == nil {
		return ""
	}
	x := a.Extra
	if x == nil {
		return a.Program.text
	}
	b := []byte(a.Program.text)
	for _, old := range x.previous {
		b = append(append(append(b, ";was="...), old.program.text...), "|0|"...)
		b = append(strconv.AppendInt(b, old.until, 10), '|')
		b = appendInts(b, old.state...)
	}
	if x.Lease > 0 {
		b = appendInts(append(b, ";lease="...), x.Lease)
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
		case name == "was" && len(x.previous) < maxPrevious:
			var old previous
			old, err = p.readPrevious(value)
			x.previous = append(x.previous, old)
		case name == "lease" && x.Lease == 0:
			x.Lease, err = p.readLease(value)
		case name == "owed" && x.Owed == 0:
			x.Owed, x.Since, err = p.readOwed(value)
		case name == "hold" && len(x.Holds) < MaxHolds:
			var h Hold
			h, err = p.readHold(value, x.Holds)
			x.Holds = append(x.Holds, h)
		default:
			err = fmt.Errorf("%.100q; accepted: owed and lease, once each, and up to %d of hold", part, MaxHolds)
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

func (p *Program) readLease(text string) (lease int64, err error) {
	err = readInts(text, &lease)
	if err == nil && (lease < 1 || lease > maxSpan/2/p.tick) {
		err = fmt.Errorf("lease is %.100q; accepted: ticks of 1 or more, up to 36 years", text)
	}
	return lease, err
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
