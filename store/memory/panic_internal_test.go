package memory

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
)

// TestPanicLeavesNoShardLocked panics in a decision, as a daemon may recover from.
func TestPanicLeavesNoShardLocked(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	h := new(stateShard)
	// without a binding
	j := joint{shards: []*stateShard{h}, parts: []jointPart{{op: algorithm.Op{Cost: 1}}}}
	h.mu.Lock()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the decision does not panic")
			}
		}()
		j.settle(s)
	}()
	if !h.mu.TryLock() {
		t.Error("after a panic the shard is locked for ever")
	}
}
