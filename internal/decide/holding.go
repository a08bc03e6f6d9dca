package decide

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// A Holding is what one limit holds for a request until a settlement: a lease, or units of a
// reservation.
type Holding struct {
	Name  string
	Limit algorithm.Limit
	Key   string
	Units int64
	End   int64 // of a lease, in nanoseconds since the Unix epoch

	Lease  bool
	Local  bool // in the memory of this process
	Quiet  bool // not enforced: a failed settlement is no error
	Stated bool // the request states its cost, so a settlement may change it
}

// Bounds on the holdings of one request.
const (
	MaxHoldings     = 64
	MaxHoldingBytes = 32 << 10

	restBytes = 256 // of a holding, other than its name and key
)

// A SizeError reports a request that would hold more than the bounds accept.
type SizeError struct{ Value, Accept string }

// Error implements error.
func (e *SizeError) Error() string {
	return "weir: the holdings are " + e.Value + "; accepted: " + e.Accept
}

// fits returns a *SizeError if the holdings of a role would exceed the bounds.
func (r *Request) fits(claims []Claim, role Role) error {
	bytes, number := 0, len(*r.Holdings)
	for i := range claims {
		if k := &claims[i]; k.Role == role && k.Bound != nil && (r.ID != 0 || k.Bound.Limit.Algorithm == algorithm.Concurrent) {
			bytes += len(k.Bound.Name) + len(k.Key) + restBytes
			number++
		}
	}
	for i := range *r.Holdings {
		h := &(*r.Holdings)[i]
		bytes += len(h.Name) + len(h.Key) + restBytes
	}
	switch {
	case number > MaxHoldings:
		return &SizeError{fmt.Sprintf("%d limits", number), fmt.Sprintf("up to %d, in all policies that match the request together", MaxHoldings)}
	case bytes > MaxHoldingBytes:
		return &SizeError{fmt.Sprintf("%d bytes", bytes), fmt.Sprintf("limits and keys of up to %d bytes together", MaxHoldingBytes)}
	}
	return nil
}

// hold adds the holding of a claim that was charged under b, if there is something to settle.
func (r *Request) hold(k *Claim, b *store.Bound, p *store.Part, o store.Outcome) {
	if b.Failed && !b.Local { // it allows all requests
		return
	}
	h := Holding{Name: b.Name, Limit: b.Limit, Key: p.Key, Units: p.Cost, Local: b.Local, Quiet: k.Role != Enforced, Stated: k.Stated}
	if p.ID == 0 {
		end, known := o.End()
		if h.Lease = true; h.Units == 0 || !known || b.Limit.Algorithm != algorithm.Concurrent {
			return
		}
		h.End = end
	}
	*r.Holdings = append(*r.Holdings, h)
}

// A Settler settles holdings.
type Settler struct {
	Bound func(*Holding) (*store.Bound, error) // that has the holding
	Now   func() int64                         // nanoseconds since the Unix epoch, or store.OwnClock
}

// settleTimeout bounds a settlement and a renewal, for any number of holdings and any timeout of the
// store.
const settleTimeout = 10 * time.Second

// A Settlement is the result of Settle.
type Settlement struct {
	Some     bool // a holding was there, or was charged late
	Reserved bool // an enforced limit had a reservation
	Charged  bool // a reservation of an enforced limit was there, or was charged late
}

// Settle ends holdings, also when ctx has ended: leases are given back, and reservations are
// committed by the operation that commit returns. The error joins those of enforced limits.
func (s Settler) Settle(ctx context.Context, held []Holding, commit func(*Holding) algorithm.Op) (d Settlement, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	there, failed := make([]bool, len(held)), make([]error, len(held))
	each(len(held), func(i int) { there[i], failed[i] = s.settle(ctx, &held[i], commit(&held[i])) })
	for i := range held {
		h := &held[i]
		d.Some = d.Some || there[i]
		if h.Quiet {
			continue
		}
		err = errors.Join(err, failed[i])
		if !h.Lease {
			d.Reserved, d.Charged = true, d.Charged || there[i]
		}
	}
	return d, err
}

// settle gives back a lease, or commits a reservation, and reports whether it was there or was charged
// late.
func (s Settler) settle(ctx context.Context, h *Holding, commit algorithm.Op) (there bool, err error) {
	if h.Lease {
		v, now, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Cancel, Cost: h.Units, End: h.End})
		return err == nil && v.Granted > 0 && now < h.End, err
	}
	v, _, err := s.do(ctx, h, commit)
	return err == nil && (v.Granted >= 0 || commit.Late && commit.Cost == 0), err
}

// Renew keeps holdings for their whole time again, from now on. An expired lease or reservation is
// taken again. It returns the holdings that are left, in the memory of held, and whether one of an
// enforced limit is gone, because it had expired and there was no room. Reservations stay in the list,
// because they can be taken again or charged; so do leases that are gone if there is an error, so that
// the next attempt reports them.
func (s Settler) Renew(ctx context.Context, held []Holding, id, life int64) (left []Holding, gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	alive, failed := make([]bool, len(held)), make([]error, len(held))
	each(len(held), func(i int) { alive[i], failed[i] = s.renew(ctx, &held[i], id, life) })
	left = held[:0]
	var lost []Holding
	for i, h := range held {
		over := failed[i] == nil && !alive[i]
		if !h.Quiet {
			err, gone = errors.Join(err, failed[i]), gone || over
		}
		if over && h.Lease {
			lost = append(lost, h)
		} else {
			left = append(left, h)
		}
	}
	if err != nil {
		left = append(left, lost...)
	}
	return left, gone, err
}

// renew renews a lease or a reservation, and reports success.
func (s Settler) renew(ctx context.Context, h *Holding, id, life int64) (alive bool, err error) {
	if !h.Lease {
		v, _, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: h.Units, Life: life})
		return err == nil && v.Granted >= 0, err
	}
	v, at, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Renew, Cost: h.Units, End: h.End})
	end, known := store.Outcome{Verdict: v, At: at}.End()
	if alive = err == nil && v.Granted > 0 && known; alive {
		h.End = end
	}
	return alive, err
}

func (s Settler) do(ctx context.Context, h *Holding, op algorithm.Op) (algorithm.Verdict, int64, error) {
	b, err := s.Bound(h)
	if err != nil {
		return algorithm.Verdict{}, 0, err
	}
	return b.DoStamped(ctx, h.Key, op, s.Now())
}

// each calls do for each of n holdings, concurrently, in the time of one store call. A panic of do is
// raised again in the caller's goroutine, which can recover.
func each(n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			errs[i] = panics.Catch(func() error { do(i); return nil })
		})
	}
	wg.Wait()
	panics.Raise(errors.Join(errs...))
}
