package storetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

//go:embed testdata/vectors.json
var vectorText []byte

// vectorsVariable is the environment's name for a file of more vectors.
const vectorsVariable = "WEIR_STORETEST_VECTORS"

// A vector is a sequence of requests with answers that were worked out by hand.
type vector struct {
	ID        string
	Limit     string
	Tolerance int64 `json:"tolerance_ns"`
	Steps     []vectorStep
}

type vectorStep struct {
	T      int64 `json:"t_ns"`
	Key    string
	Cost   int64
	Expect struct {
		Allowed    *bool
		Remaining  *int64
		RetryAfter any    `json:"retry_after_ns"`
		ResetAfter *int64 `json:"reset_after_ns"`
		Delay      *int64 `json:"delay_ns"`
	}
}

func readVectors(text []byte) (all []vector, err error) {
	err = json.Unmarshal(text, &all)
	return all, err
}

// vectors runs every vector that the store can count.
func vectors(k *check) {
	all, err := readVectors(vectorText)
	if err != nil {
		k.Fatalf("%v", err)
	}
	if name := os.Getenv(vectorsVariable); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			k.Fatalf("%v", err)
		}
		more, err := readVectors(text)
		if err != nil {
			k.Fatalf("%s: %v", name, err)
		}
		all = append(all, more...)
	}
	s := k.trusting()
	for _, v := range all {
		if !k.shared() { // each has a clock of its own
			s = k.trusting()
		}
		switch limit := algorithm.MustParseLimit(v.Limit); {
		case k.countable(v, limit):
			k.vector(s, v, limit, 1)
		case k.slowable(v, limit):
			k.vector(s, v, k.slowed(limit), int64(k.tick))
		default:
			k.Logf("vector %s is left out: its limit is refused, or its times are out of reach", v.ID)
		}
	}
}

// countable reports whether the store can count a vector as it is.
func (k *check) countable(v vector, limit algorithm.Limit) bool {
	for _, step := range v.Steps {
		if step.T%int64(k.tick) != 0 {
			return false
		}
	}
	return k.refused(limit) == ""
}

// slowable reports whether it can when a nanosecond of the vector is a tick of the store: then what is the next whole
// nanosecond is the next whole tick.
func (k *check) slowable(v vector, limit algorithm.Limit) bool {
	for _, step := range v.Steps {
		if most := algorithm.MaxTime / 2 / int64(k.tick); step.T > most || step.T < -most {
			return false
		}
	}
	return limit.Period < algorithm.Never/k.tick && k.refused(k.slowed(limit)) == ""
}

func (k *check) slowed(limit algorithm.Limit) algorithm.Limit {
	limit.Period = time.Duration(int64(limit.Period) * int64(k.tick))
	return limit
}

// vector runs a vector whose nanoseconds are taken for so many.
func (k *check) vector(s store.Store, v vector, limit algorithm.Limit, slow int64) {
	b := k.bindSpec(s, store.Spec{Limit: limit, Name: k.name()})
	for i, step := range v.Steps {
		got := b.take(step.Key, step.Cost, step.T*slow)
		if wrong := k.wrong(v, step, got, slow); wrong != "" {
			k.Errorf("vector %s, %v, step %d: %s; the verdict is %s", v.ID, b.limit, i, wrong, show(got))
			return
		}
	}
}

// wrong says what of a verdict is not as a vector has it.
func (k *check) wrong(v vector, step vectorStep, got algorithm.Verdict, slow int64) string {
	d, e := got.Decision(0), step.Expect
	if e.Allowed != nil && *e.Allowed != d.Allowed {
		return fmt.Sprintf("allowed is %v", d.Allowed)
	}
	if e.Remaining != nil && *e.Remaining != d.Remaining {
		return fmt.Sprintf("remaining is %d, want %d", d.Remaining, *e.Remaining)
	}
	var retry *int64
	switch want := e.RetryAfter.(type) {
	case float64:
		ns := int64(want)
		retry = &ns
	case string:
		if d.RetryAfter != algorithm.Never {
			return fmt.Sprintf("retry after is %v, want never", d.RetryAfter)
		}
	}
	for _, wait := range []struct {
		name string
		got  time.Duration
		want *int64
	}{{"retry after", d.RetryAfter, retry}, {"reset after", d.ResetAfter, e.ResetAfter}, {"delay", d.Delay, e.Delay}} {
		if wait.want == nil {
			continue
		}
		want, tolerance := k.roundUp(time.Duration(*wait.want*slow)), time.Duration(0)
		if v.Tolerance > 0 {
			tolerance = max(time.Duration(v.Tolerance*slow), k.tick)
		}
		if diff := wait.got - want; diff > tolerance || -diff > tolerance {
			return fmt.Sprintf("%s is %v, want %v", wait.name, wait.got, want)
		}
	}
	return ""
}
