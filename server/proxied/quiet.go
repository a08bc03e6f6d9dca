package proxied

import (
	"sync/atomic"
	"time"
)

// quietTime is the least time between two lines in the log.
const quietTime = 10 * time.Second

// A quiet lets one pass every ten seconds, so that clients can't fill the log.
type quiet struct{ last atomic.Int64 }

func (q *quiet) over(now time.Time) bool {
	n, last := now.UnixNano(), q.last.Load()
	return n-last >= int64(quietTime) && q.last.CompareAndSwap(last, n)
}
