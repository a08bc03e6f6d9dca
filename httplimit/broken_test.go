package httplimit_test

import (
	"context"
	"errors"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A brokenStore decides nothing, and says why in words that are for nobody else.
type brokenStore struct{}

func (s brokenStore) Bind(store.Spec) (store.Binding, error) { return s, nil }

func (brokenStore) Do(context.Context, string, algorithm.Op, int64) (algorithm.Verdict, error) {
	return algorithm.Verdict{}, errors.New("dial tcp 10.1.2.3:6379: internal")
}
