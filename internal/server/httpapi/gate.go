package httpapi

import (
	"sync/atomic"
	"time"
)

// A gate lets one pass a second, so that a failing store doesn't fill the log.
type gate struct{ last atomic.Int64 }

func (g *gate) open(now time.Time) bool {
	second, last := now.Unix(), g.last.Load()
	return second != last && g.last.CompareAndSwap(last, second)
}
