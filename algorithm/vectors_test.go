package algorithm_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

type vector struct {
	ID        string
	Limit     string
	Tolerance int64 `json:"tolerance_ns"`
	Steps     []struct {
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
}

func readVectors(t *testing.T, file string) (vectors []vector) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func TestVectors(t *testing.T) {
	vectors := readVectors(t, "testdata/vectors.json")
	const more = "../../shared/vectors/vectors.json"
	if _, err := os.Stat(more); err == nil {
		vectors = append(vectors, readVectors(t, more)...)
	}
	for _, v := range vectors {
		t.Run(v.ID, func(t *testing.T) { run(t, v) })
	}
}

func run(t *testing.T, v vector) {
	limit, err := algorithm.ParseLimit(v.Limit)
	if err != nil {
		t.Fatal(err)
	}
	program, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string][]int64{}
	for i, step := range v.Steps {
		state, r := program.Apply(states[step.Key], algorithm.Op{Cost: step.Cost}, step.T)
		states[step.Key] = state
		e := step.Expect
		if e.Allowed != nil && *e.Allowed != r.Allowed {
			t.Fatalf("step %d: allowed %v; %+v", i, r.Allowed, r)
		}
		if e.Remaining != nil && *e.Remaining != r.Remaining {
			t.Errorf("step %d: remaining %d, want %d", i, r.Remaining, *e.Remaining)
		}
		near := func(name string, got time.Duration, want int64) {
			if diff := int64(got) - want; diff > v.Tolerance || -diff > v.Tolerance {
				t.Errorf("step %d: %s %d, want %d", i, name, got, want)
			}
		}
		switch want := e.RetryAfter.(type) {
		case float64:
			near("retry after", r.RetryAfter, int64(want))
		case string:
			near("retry after", r.RetryAfter, int64(algorithm.Never))
		}
		if e.ResetAfter != nil {
			near("reset after", r.ResetAfter, *e.ResetAfter)
		}
		if e.Delay != nil {
			near("delay", r.Delay, *e.Delay)
		}
	}
}
