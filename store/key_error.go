package store

import (
	"errors"
	"fmt"
	"strings"
)

// A KeyError says under which key something is stored that is none of weir's. A key can be who asked: [WithoutKeys] leaves it out.
type KeyError struct {
	Key string // as the engine has it
	Err error
}

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("%v: the value of %s is no state of this limit", e.Err, e.named())
}

// Unwrap is for errors.Is and errors.As.
func (e *KeyError) Unwrap() error { return e.Err }

func (e *KeyError) named() string { return fmt.Sprintf("%.200q", e.Key) }

// WithoutKeys returns an error's text without the keys that are named in it, by KeyErrors: for who must not tell whose they are.
func WithoutKeys(err error) string { return withoutKeys(err, err.Error()) }

func withoutKeys(err error, text string) string {
	if named, ok := err.(*KeyError); ok { //nolint:errorlint // this very one; those that it wraps are looked at too
		text = strings.ReplaceAll(text, named.named(), "a key")
	}
	switch e := err.(type) { //nolint:errorlint // what is wrapped is looked at
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return withoutKeys(inner, text)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			text = withoutKeys(inner, text)
		}
	default: // it may say by As what it is made of
		if named, ok := errors.AsType[*KeyError](err); ok {
			return withoutKeys(named, text)
		}
	}
	return text
}
