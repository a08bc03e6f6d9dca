package memory

import (
	"testing"
	"time"
)

// TestPitfallT3WallStepBack: the store counts from its start by the monotonic clock. A wall clock that was stepped by an
// hour since then shows only in the start, which stays.
func TestPitfallT3WallStepBack(t *testing.T) {
	base := time.Now()
	c := clock{base: base, start: base.Add(time.Hour).UnixNano()} // as if the wall clock had been an hour ahead then
	if ahead := c.now() - time.Now().UnixNano(); ahead < int64(time.Hour-time.Minute) {
		t.Errorf("the clock went with the wall clock: it is %v ahead, want 1h", time.Duration(ahead))
	}
}
