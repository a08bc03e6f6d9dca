package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// Bounds on options.
const (
	minHold = time.Millisecond
	maxHold = 24 * time.Hour
	maxName = 128
)

// An OptionError says which of the Options can't be had, and what would do.
type OptionError struct{ Field, Value, Accept string }

// Error implements error.
func (e *OptionError) Error() string {
	return fmt.Sprintf("admission: %s is %s; accepted: %s", e.Field, e.Value, e.Accept)
}

// A demand is something that Options must be, and what is said if they are not.
type demand struct {
	met                  bool
	field, value, accept string
}

func firstUnmet(demands ...demand) error {
	for _, d := range demands {
		if !d.met {
			return &OptionError{d.field, d.value, d.accept}
		}
	}
	return nil
}

// checkFor refuses what makes no sense with a limiter.
func (o Options) checkFor(l *weir.Limiter) error {
	if l == nil {
		return &OptionError{"limits", "a nil *weir.Limiter", "what weir.New returned"}
	}
	limit := l.Limit()
	if limit == (weir.Limit{}) {
		return &OptionError{"limits", "the zero weir.Limiter", "what weir.New returned"}
	}
	err := firstUnmet(
		demand{len(o.Attributes) == 0, "Attributes", counted(len(o.Attributes)), "none with a limiter: they are for policies. Who is counted is Key"},
		demand{o.Name == "" || isName(o.Name), "Name", fmt.Sprintf("%.200q", o.Name), fmt.Sprintf("up to %d of the characters from space to ~", maxName)},
		demand{o.Charge == nil || l.Name() != "", "Charge", "for a limiter without a name", "one that has a name, under which the estimate is kept: weir.WithName"},
		demand{o.Charge == nil || limit.Algorithm != weir.Concurrent, "Charge", "for " + limit.String(), "none with a concurrent limit, which counts what is under way"},
		demand{o.Charge == nil || limit.Algorithm != weir.Exponential, "Charge", "for " + limit.String(), "none with an exponential limit, which gives nothing back of what was held"},
	)
	if err != nil {
		return err
	}
	if o.Key != nil {
		err = because("Key", o.Key.Err())
	}
	if _, refusal := o.OnStoreError.Limit(limit); refusal != nil {
		err = cmp.Or[error](err, &OptionError{"OnStoreError", o.OnStoreError.String(),
			"store.Deny, store.Allow, store.Local, or a store.LocalShare that the limit has: " + strings.TrimPrefix(refusal.Error(), "weir: ")})
	}
	return cmp.Or(err, o.check())
}

// checkForSet refuses what makes no sense with policies.
func (o Options) checkForSet(s *policy.Set) error {
	if s == nil {
		return &OptionError{"limits", "a nil *policy.Set", "what policy.New returned"}
	}
	if s.Config() == nil {
		return &OptionError{"limits", "the zero policy.Set", "what policy.New returned"}
	}
	err := firstUnmet(
		demand{o.Name == "", "Name", fmt.Sprintf("%.200q", o.Name), "none with policies, which have names"},
		demand{o.Key == nil, "Key", counted(len(o.Key)), "none with policies, which have keys. What they are told besides is Attributes"},
		demand{o.Override == nil, "Override", "a function", "none with policies, which have plans"},
		demand{o.OnStoreError == store.Deny, "OnStoreError", o.OnStoreError.String(), "none with policies, which have on_store_error"},
	)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Attributes)) {
		if name == "" || len(name) > maxName {
			return &OptionError{"Attributes", fmt.Sprintf("of the name %.200q", name), fmt.Sprintf("names of 1 to %d bytes", maxName)}
		}
		if err := because(fmt.Sprintf("Attributes[%q]", name), o.Attributes[name].Err()); err != nil {
			return err
		}
	}
	return o.check()
}

// check refuses what makes no sense with anything.
func (o Options) check() error {
	return firstUnmet(
		demand{o.Hold == 0 || o.Charge != nil, "Hold", o.Hold.String(), "0 without Charge, for which it is"},
		demand{o.Hold == 0 || minHold <= o.Hold && o.Hold <= maxHold, "Hold", o.Hold.String(), fmt.Sprintf("0, for %v, or %v to %v", DefaultHold, minHold, maxHold)},
	)
}

// because makes an error of package identity one of the option.
func because(option string, err error) error {
	var wrong *identity.SourceError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &OptionError{option, fmt.Sprintf("nothing to go by: %s is %s", wrong.Field, wrong.Value), wrong.Accept}
	}
	return fmt.Errorf("admission: %s: %w", option, err)
}

func counted(n int) string { return fmt.Sprintf("of length %d", n) }

// isName reports whether a name can be a quoted string of a header field.
func isName(name string) bool {
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return len(name) <= maxName
}
