package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A recorder is a test whose failure is what is tested.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	said     strings.Builder
	cleanups []func()
}

func (r *recorder) sayf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(&r.said, format+"\n", args...)
}

func (r *recorder) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Helper()                          {}
func (r *recorder) Name() string                     { return "recorded" }
func (r *recorder) Context() context.Context         { return context.Background() }
func (r *recorder) Log(args ...any)                  { r.sayf("%s", fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any)  { r.sayf(format, args...) }
func (r *recorder) Errorf(format string, a ...any)   { r.sayf(format, a...); r.fail() }
func (r *recorder) Error(args ...any)                { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fatal(args ...any)                { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, a ...any)   { r.Errorf(format, a...); runtime.Goexit() }
func (r *recorder) Skip(args ...any)                 { r.Log(args...); r.skipped = true; runtime.Goexit() }
func (r *recorder) Skipf(format string, args ...any) { r.Skip(fmt.Sprintf(format, args...)) }
func (r *recorder) Cleanup(f func())                 { r.cleanups = append(r.cleanups, f) }

// holds holds a store to one rule, and returns what came of it.
func holds(t *testing.T, h Harness, name string) *recorder {
	t.Helper()
	for _, rule := range rules {
		if rule.Name != name {
			continue
		}
		r := &recorder{}
		s := newSuite(h)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.hold(r, rule)
		}()
		<-done
		s.crew.dismiss()
		for _, f := range slices.Backward(r.cleanups) {
			f()
		}
		return r
	}
	t.Fatalf("there is no rule %s", name)
	return nil
}
