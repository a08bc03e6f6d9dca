// Package panics carries a panic from the goroutine in which it happens to one that waits for the
// result. A goroutine without a recover would end the process, also where each connection of a
// server recovers from the panics of its own goroutine.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// A Panic is a panic that Catch recovered from.
type Panic struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value and the stack.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Catch calls f and returns its error, or a *Panic if f panics.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Raise panics if err is a *Panic or wraps one.
func Raise(err error) {
	if p, ok := errors.AsType[*Panic](err); ok {
		panic(p)
	}
}
