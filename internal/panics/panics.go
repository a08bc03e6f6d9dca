// Package panics carries a panic from its goroutine to a goroutine that waits for the result. A
// goroutine without a recover would end the process, also where each connection of a server
// recovers from the panics of its own goroutine.
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// An Error is a panic after the recovery in Catch.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

// Error returns the value and the stack.
func (p *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Catch calls f and returns its error, or a *Error if f panics.
func Catch(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Background calls f and returns its error, or a *Error if f panics. It also logs the panic by the
// default logger of log/slog, at level error with the stack: a task of the background has no caller
// who could recover from a panic.
func Background(task string, f func() error) error {
	err := Catch(f)
	if p, ok := errors.AsType[*Error](err); ok {
		slog.Error("panic", "task", task, "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
	return err
}

// Raise panics if err is a *Error or wraps one.
func Raise(err error) {
	if p, ok := errors.AsType[*Error](err); ok {
		panic(p)
	}
}
