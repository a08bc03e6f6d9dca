package faults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/store"
)

// timeout is the timeout of the stores under load, patience the timeout of the store for counting.
const timeout, patience = 300 * time.Millisecond, time.Hour

// A system is an engine under test.
type system struct {
	name string
	url  string // of the engine
	// parameters are the URL parameters for the timeout and the prefix of a store.
	timeout, prefix string
	atomic          bool // a joint take is a single step
	load            *crew
}

// suite returns the system with processes for the load, which end with the test. Short suites run
// in parallel, because most of their time is waiting.
func (s system) suite(t *testing.T) system {
	s.load = &crew{}
	t.Cleanup(s.load.end)
	if testing.Short() {
		t.Parallel()
	}
	return s
}

// A fault is brought about while the load runs.
type fault struct {
	name string
	// by is the URL for the load; "" is the URL of the system.
	by string
	// prepare is called before the fault, while the load runs. nil does nothing.
	prepare func(r *run)
	// strike brings the fault about, mend ends it. mend may be nil.
	strike, mend func(r *run)
	// loses describes the data lost by design; "" is none. Unless it is lostAll, the engine loses the
	// latest changes.
	loses string
	// fails states that calls of each process fail.
	fails bool
	// closed ends the load before the fault ends.
	closed bool
	// refusal is in the errors by which the engine refuses a call. Such a call has changed nothing,
	// and its error must state it. "" is none.
	refusal string
}

// lostAll describes the loss of all data.
const lostAll = "all"

// A run is a fault on a system under load.
type run struct {
	testing.TB
	system

	fault fault
}

// Least numbers and durations, with -short and without.
const (
	callsBefore, callsDuring, callsAfter = 60, goroutines, 30
	longHold                             = 3 * time.Second
)

var runs atomic.Int64

// suffer runs the load on the system, brings a fault about, and checks every call.
func (s system) suffer(t *testing.T, f fault) {
	t.Run(strings.ReplaceAll(f.name, " ", "-"), func(t *testing.T) {
		r, load := &run{t, s, f}, s.load
		if r.fault.by == "" {
			r.fault.by = s.url
		}
		prefix := fmt.Sprintf("faults%d", runs.Add(1))
		load.start(t, s.with(r.fault.by, timeout, prefix))
		load.await(t, func(_ int, p progress) bool { return p.Admitted >= callsBefore })
		if f.prepare != nil {
			f.prepare(r)
		}
		before := load.look(t)
		var lost loss
		began := time.Now()
		f.strike(r)
		if f.loses != "" {
			lost = loss{span{began.UnixNano(), time.Now().UnixNano()}, f.loses == lostAll}
		}
		mended := time.Now()
		if f.mend != nil {
			r.hold(began)
			if f.closed {
				reports := load.stop(t)
				f.mend(r)
				r.judge(reports, prefix, lost, time.Now())
				return
			}
			f.mend(r)
			mended = time.Now()
		}
		r.hold(mended)
		if f.fails {
			load.await(t, func(i int, p progress) bool { return p.Failed > before[i].Failed })
		}
		load.await(t, func(_ int, p progress) bool { return p.Streak >= callsAfter })
		r.judge(load.stop(t), prefix, lost, mended)
	})
}

// hold returns when the load has run long enough under the fault.
func (r *run) hold(began time.Time) {
	r.load.more(r, callsDuring)
	if !testing.Short() {
		time.Sleep(longHold - time.Since(began))
	}
}

// with adds parameters to a URL.
func (s system) with(url string, timeout time.Duration, prefix string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + s.timeout + "=" + timeout.String() + "&" + s.prefix + "=" + prefix
}

// judge checks the calls, and adds a row to the table.
func (r *run) judge(reports []*report, prefix string, lost loss, mended time.Time) {
	r.Helper()
	s := r.open(prefix)
	defer s.Close()
	var calls []call
	errs := map[string]int{}
	left, peak := 0, 0
	for _, p := range reports {
		calls = append(calls, p.Calls...)
		merge(errs, p.Errors)
		for text := range p.Doubts {
			if r.fault.refusal != "" && strings.Contains(text, r.fault.refusal) && !strings.Contains(text, store.ErrNothingDone.Error()) {
				r.Errorf("a refusal without a statement that nothing was changed: %s", text)
			}
		}
		left, peak = left+p.Left, max(peak, p.Peak)
		if p.Left > 0 {
			r.Errorf("%d goroutines are left after Close:\n%s", p.Left, p.Stacks)
		}
	}
	found := check(calls, lost, func(b int, k int32) (int64, error) { return used(s, b, k) })
	for _, text := range found.wrong {
		r.Errorf("%s", text)
	}
	if joint := found.used; r.atomic && joint[0] != joint[1] {
		r.Errorf("joint takes charged %d and %d units", joint[0], joint[1])
	}
	row := newRow(r, calls, found, mended)
	row.left, row.peak = left, peak
	r.Logf("%+v", row)
	for _, text := range slices.Sorted(maps.Keys(errs)) {
		r.Logf("%d × %s", errs[text], text)
	}
	if !r.Failed() {
		rowsMutex.Lock()
		defer rowsMutex.Unlock()
		rows = append(rows, row)
	}
}

// open opens the store as soon as the engine is ready. Only the test binary has a deadline.
func (r *run) open(prefix string) opened {
	for {
		s, err := engines.Open(context.Background(), r.with(r.url, patience, prefix), engines.Options{})
		if err == nil {
			return s
		}
		r.Logf("not yet: %v", err)
		time.Sleep(pollEvery)
	}
}

// used returns the units charged by the engine for a key. It repeats a refused call, as during the
// move of a slot.
func used(s store.Store, budget int, k int32) (int64, error) {
	b := budgets[budget]
	limit := algorithm.MustParseLimit(b.limit)
	binding, err := s.Bind(store.Spec{Limit: limit, Name: b.name})
	if err != nil {
		return 0, err
	}
	for try := 0; ; try++ {
		v, err := binding.Do(context.Background(), key(budget, k), algorithm.Op{}, store.OwnClock)
		if err == nil {
			return limit.Capacity() - v.Remaining, nil
		}
		if try == polls {
			return 0, err
		}
		time.Sleep(pollEvery)
	}
}

var update = flag.Bool("update", false, "write the table to docs/faults.md")
