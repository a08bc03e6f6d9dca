package memory_test

import (
	"testing"
	"time"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
	"github.com/weirlimit/weir/store/storetest"
)

// TestConformance holds the store to what every store must do.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB, storetest.Options) store.Store { return memory.New(memory.Options{}) },
		Tick: time.Nanosecond,
	})
}
