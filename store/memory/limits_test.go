package memory_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// TestFloodOfLimitsLeavesRoomForOthers: a new limit in each request, in a nearly full store, neither
// takes the store beyond MaxBytes nor denies the new keys of another name. The daemon remembers
// about as many bindings as the test.
func TestFloodOfLimitsLeavesRoomForOthers(t *testing.T) {
	const bytes, limits = 32 << 20, 9000
	for _, flood := range []struct {
		what, name, text string
		key              func(i int) string
		cost             int64
	}{
		{"keys of one name", "flood", "5/%dms", func(i int) string { return fmt.Sprint(i) }, 1},
		{"changes of few keys", "flood", "5/%dms", func(i int) string { return fmt.Sprint(i % 3) }, 1},
		{"peeks", "flood", "5/%dms", func(i int) string { return fmt.Sprint(i) }, 0},
		{"states without a name", "", "fixed-window 5/%dms", func(i int) string { return fmt.Sprint(i) }, 1},
		{"words without a name", "", "5/%dms", func(i int) string { return fmt.Sprint(i) }, 1},
	} {
		t.Run(flood.what, func(t *testing.T) {
			s := memory.New(memory.Options{MaxBytes: bytes})
			other := bindNamed(t, s, "other", "5/1m").binding
			fill := bindNamed(t, s, "fill", "sliding-buckets 5/1h cells=3600").binding
			for i := 0; s.Stats().Overflowed == 0; i++ {
				do(t, fill, fmt.Sprint(i), algorithm.Op{Cost: 1}, 0)
			}
			var remembered []store.Binding
			for i := range limits {
				b := bindNamed(t, s, flood.name, fmt.Sprintf(flood.text, 1001+i)).binding
				do(t, b, flood.key(i), algorithm.Op{Cost: flood.cost}, 0)
				remembered = append(remembered, b)
			}
			if got := s.Stats(); got.Bytes > got.MaxBytes {
				t.Errorf("%+v", got)
			}
			denied := 0
			for i := range 600 {
				if !take1(t, other, fmt.Sprint(i), 0) {
					denied++
				}
			}
			if denied > 0 {
				t.Errorf("%d of 600 new keys of another name are denied: %+v", denied, s.Stats())
			}
			runtime.KeepAlive(remembered)
		})
	}
}

// TestLimitsHaveAnOwner: the limits of the records of a name count in the share of the name.
func TestLimitsHaveAnOwner(t *testing.T) {
	const perKey = 768 + 168
	s := memory.New(memory.Options{})
	for i := range 1000 {
		take1(t, bindNamed(t, s, "name", fmt.Sprintf("5/%dms", 1001+i)).binding, fmt.Sprint(i), 0)
	}
	if got := s.Largest(); got.Name != "name" || got.Bytes != 1000*perKey {
		t.Errorf("%+v, want 1000 keys of %d bytes", got, perKey)
	}
}
