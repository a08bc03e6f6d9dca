package admission

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/policy"
)

// held is what an admitted request holds. All copies of its Admission have the same one.
type held struct {
	gate     *Gate
	request  *http.Request
	turn     time.Time // the zero Time if it need not wait
	holding  holding
	mu       sync.Mutex
	renewal  *time.Timer // nil: nothing is renewed
	renewing bool        // just now
	settled  bool
	left     ending
	leaves   bool // to who is renewing what is left to do
}

// A holding is something that is settled once.
type holding interface {
	// settle gives it back, and charges the cost if that is known only now.
	settle(ctx context.Context, cost int64) error
	// giveBack is for work that was not done.
	giveBack(ctx context.Context) error
	// renew renews leases and estimates for their whole time. more is true while there is something
	// left to renew.
	renew(ctx context.Context) (more bool, err error)
}

func newHeld(g *Gate, r *http.Request, delay time.Duration, what holding) *held {
	h := &held{gate: g, request: r, holding: what}
	if delay > 0 {
		h.turn = time.Now().Add(delay)
	}
	return h
}

// Await waits for the slot of a request that a leaky queue has admitted. If ctx ends first, Await
// returns the error of ctx and gives up the slot: a limiter gives the slot to the next waiters.
// Policies can't take a slot back, only the leases and estimates of the request.
func (a *Admission) Await(ctx context.Context) error {
	if a.held == nil || a.held.turn.IsZero() {
		return nil
	}
	timer := time.NewTimer(time.Until(a.held.turn))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		a.held.giveBack() //nolint:contextcheck // it is done although the context has ended
		return ctx.Err()
	}
}

// Finish settles the holdings of the request: its leases are given back, and its cost is charged.
// It does its work also when the request's context has ended. Only the first call counts. A server
// calls Finish in a defer, to run it also when the handler panics. A failed settlement is logged,
// and the leases and estimates expire by themselves. An estimate that expired before, because the
// process stood still or could not reach the store, is charged in full, as debt where there is no
// room. Finish does not wait for a renewal in progress: the rest is settled after the renewal.
func (a *Admission) Finish(r Response) {
	if h := a.held; h != nil && h.first() {
		h.end(ending{cost: h.gate.charge(h.request, r), served: true})
	}
}

// charge is what the Options say that the request cost.
func (g *Gate) charge(r *http.Request, response Response) int64 {
	if g.opts.Charge == nil {
		return 0
	}
	cost := g.opts.Charge(r, response)
	if cost < 0 {
		g.warn(negative, "a response was charged less than nothing, which is 0", &weir.CostError{Cost: cost})
	}
	return min(max(cost, 0), policy.MaxCost)
}

// giveBack settles what is held for work that was not done.
func (h *held) giveBack() {
	if h.first() {
		h.end(ending{})
	}
}

// An ending is what became of a request.
type ending struct {
	cost   int64
	served bool
}

// first reports whether nobody has settled what is held, and ends its renewals.
func (h *held) first() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settled {
		return false
	}
	h.settled = true
	if h.renewal != nil {
		h.renewal.Stop()
	}
	return true
}

// end settles what is held, or leaves that to the renewal that is under way.
func (h *held) end(e ending) {
	h.mu.Lock()
	h.left, h.leaves = e, h.renewing
	h.mu.Unlock()
	if !h.leaves {
		h.settle(e)
	}
}

func (h *held) settle(e ending) {
	ctx := context.WithoutCancel(h.request.Context())
	var err error
	if e.served {
		err = h.holding.settle(ctx, e.cost)
	} else {
		err = h.holding.giveBack(ctx)
	}
	if err != nil {
		h.gate.warn(unsettled, "what a request held was not settled", err)
	}
}

// renewEvery renews leases and estimates of a length in good time, however long the request takes:
// the client controls that.
func (h *held) renewEvery(lease time.Duration) {
	wait := max(lease/3, time.Millisecond)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewal = time.AfterFunc(wait, func() { h.renew(lease, wait) })
}

// renew renews the holdings now, and again after the wait. A settlement during a renewal is left to
// renew.
func (h *held) renew(lease, wait time.Duration) {
	h.mu.Lock()
	if h.settled {
		h.mu.Unlock()
		return
	}
	h.renewing = true
	h.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.request.Context()), lease)
	more := true // also after a panic
	err := panics.Catch(func() (err error) {
		more, err = h.holding.renew(ctx)
		return err
	})
	cancel()
	if err != nil {
		h.gate.warn(unrenewed, "what a request holds was not renewed", err)
	}

	h.mu.Lock()
	h.renewing = false
	left, leaves := h.left, h.leaves
	if more && !h.settled {
		h.renewal.Reset(wait)
	}
	h.mu.Unlock()
	if leaves {
		err = panics.Catch(func() error {
			h.settle(left)
			return nil
		})
		if err != nil {
			h.gate.warn(unsettled, "what a request held was not settled", err)
		}
	}
}

// errLost reports a lease or an estimate that expired before its renewal, without room for another
// take.
var errLost = errors.New("admission: it had expired, and others have its place; the request goes on")

// errUncharged reports an uncharged cost: the memory store has no room for the key.
var errUncharged = errors.New("admission: the cost of a request was not charged: the store is full")
