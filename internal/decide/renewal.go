package decide

import (
	"sync"
	"time"
)

// A Renewal renews a lease or a reservation in the background until Stop. The zero Renewal has not
// started. It may be used by many goroutines at once.
type Renewal struct {
	mu      sync.Mutex
	timer   *time.Timer
	idle    chan struct{} // closed when the renewal in progress ends; nil: there is none
	stopped bool
}

// NoRenewal is the pause after the last renewal.
const NoRenewal time.Duration = -1

// Start has run called after a pause, in a goroutine of its own. run calls Run.
func (n *Renewal) Start(pause time.Duration, run func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.timer = time.AfterFunc(pause, run)
}

// Run calls renew, unless the Renewal was stopped, and plans the next call after the pause that renew
// returns. renew must not panic.
func (n *Renewal) Run(renew func() (pause time.Duration)) {
	n.mu.Lock()
	if n.stopped {
		n.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	n.idle = idle
	n.mu.Unlock()

	pause := renew()

	n.mu.Lock()
	defer n.mu.Unlock()
	n.idle = nil
	close(idle)
	if pause >= 0 && !n.stopped {
		n.timer.Reset(pause)
	}
}

// Stop ends the renewals. idle is closed when the renewal in progress has ended; it is nil if there
// is none.
func (n *Renewal) Stop() (idle <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
	return n.idle
}
