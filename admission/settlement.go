package admission

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/policy"
)

// held is what an admitted request holds. All copies of its Admission have the same one.
type held struct {
	gate    *Gate
	request *http.Request
	start   time.Time // of the slot in a leaky queue; the zero Time if the request need not wait
	holding holding
	life    time.Duration // of the holding between renewals; 0: it is not renewed
	renewal decide.Renewal
	settled atomic.Bool
	served  bool  // the work was done, at the cost; otherwise the holding is given back
	cost    int64 // in units
}

// hold adds a holding to an admission. It is renewed in good time for as long as the request takes,
// which the client controls.
func (g *Gate) hold(r *http.Request, a *Admission, what holding, life time.Duration) {
	h := &held{gate: g, request: r, holding: what, life: life}
	if a.Decision.Delay > 0 {
		h.start = time.Now().Add(a.Decision.Delay)
	}
	if life > 0 {
		h.renewal.Start(h.pause(), func() { h.renewal.Run(h.renew) })
	}
	a.held = h
}

// pause returns the time between renewals.
func (h *held) pause() time.Duration { return max(h.life/3, time.Millisecond) }

// renew renews the holding.
func (h *held) renew() (pause time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.request.Context()), h.life)
	defer cancel()
	more := true // also after a panic
	err := panics.Catch(func() (err error) {
		more, err = h.holding.renew(ctx)
		return err
	})
	if err != nil {
		h.gate.warn(unrenewed, "what a request holds was not renewed", err)
	}
	if !more {
		return decide.NoRenewal
	}
	return h.pause()
}

// Await waits for the slot of a request that a leaky queue has admitted. If ctx ends first, Await
// returns the error of ctx and gives up the slot: a limiter gives the slot to the next waiters.
// Policies can't take a slot back, only the leases and estimates of the request.
func (a *Admission) Await(ctx context.Context) error {
	if a.held == nil || a.held.start.IsZero() {
		return nil
	}
	timer := time.NewTimer(time.Until(a.held.start))
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
	if h := a.held; h != nil && h.settled.CompareAndSwap(false, true) {
		h.served, h.cost = true, h.gate.charge(h.request, r)
		h.end()
	}
}

// giveBack settles a holding for work that was not done.
func (h *held) giveBack() {
	if h.settled.CompareAndSwap(false, true) {
		h.end()
	}
}

// charge returns the cost of a response by the Options.
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

// end settles a holding, now or after the renewal in progress.
func (h *held) end() {
	idle := h.renewal.Stop()
	if idle == nil {
		h.settle()
		return
	}
	go func() {
		<-idle
		if err := panics.Catch(func() error { h.settle(); return nil }); err != nil {
			h.warn(err)
		}
	}()
}

func (h *held) settle() {
	ctx := context.WithoutCancel(h.request.Context())
	var err error
	if h.served {
		err = h.holding.settle(ctx, h.cost)
	} else {
		err = h.holding.giveBack(ctx)
	}
	if err != nil {
		h.warn(err)
	}
}

func (h *held) warn(err error) { h.gate.warn(unsettled, "what a request held was not settled", err) }

// errLost reports a lease or an estimate that expired before its renewal, without room for another
// take.
var errLost = errors.New("admission: it had expired, and others have its place; the request goes on")

// errUncharged reports an uncharged cost: the memory store has no room for the key.
var errUncharged = errors.New("admission: the cost of a request was not charged: the store is full")
