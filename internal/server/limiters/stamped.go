package limiters

import (
	"context"
	"errors"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// DoStamped carries out an operation and tells at what time by the store's clock it took effect, in nanoseconds since 1970. The
// error of a store that can't tell that says so.
func (b *Bound) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	switch {
	case b.Stamper != nil:
		return b.Stamper.DoStamped(ctx, key, op, now)
	case now == store.OwnClock && b.Clock == nil:
		return v, 0, errors.New("weir: the store does not tell its time")
	case now == store.OwnClock:
		now = b.Clock.Now()
	}
	v, err = b.Do(ctx, key, op, now)
	return v, now, err
}
