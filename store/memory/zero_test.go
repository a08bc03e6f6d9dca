package memory_test

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

func TestZeroStoreReturnsAnError(t *testing.T) {
	for _, s := range []*memory.Store{nil, {}} {
		if _, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("1/1s")}); err == nil {
			t.Error("no error")
		}
	}
}
