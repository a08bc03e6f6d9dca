package weir

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// ErrLeaseLost reports a Lease that ended before its release: no renewal succeeded in time, because
// the store was away or the process was stopped. Another holder may have had the place since.
var ErrLeaseLost = errors.New("weir: the lease ended before it was released; others may have had its place since")

// errNilLease is the error of the methods of a nil Lease.
var errNilLease = errors.New("weir: the Lease is nil; accepted: a Lease that Limiter.Acquire returned")

// errReleased is the cause of the end of a Lease released in time.
var errReleased = errors.New("weir: the lease was released")

// Bounds on the time between two attempts of a waiter to get a place.
const (
	minPoll = time.Millisecond
	maxPoll = time.Second
)

// A Lease is a place of a concurrent limit, or several. It is renewed in the background until
// Release, which must be called. All methods may be called by many goroutines at once. The zero
// Lease holds nothing.
type Lease struct {
	reservation *Reservation
	done        context.Context //nolint:containedctx // ends with the lease; its cause is ErrLeaseLost or errReleased
	end         context.CancelCauseFunc

	renewal decide.Renewal // not started if the lease holds no place
	until   time.Time      // the place is kept at least until then, by this process's clock
}

// Acquire blocks until the key has room for the cost under a concurrent limit, takes it, and
// returns a Lease, which is renewed in the background until Release: at a third of the lease, and
// at each tenth of it while the store fails:
//
//	lease, err := limiter.Acquire(ctx, "reports", 1)
//	if err != nil {
//		return err
//	}
//	defer lease.Release(ctx)
//	return work(lease.Context(ctx))
//
// Waiters for one key of one Limiter go first in, first out. A place released through this Limiter
// goes to the first waiter at once. The first waiter checks for places from other Limiters and
// processes when the oldest lease ends and once a second.
//
// If ctx ends first, Acquire returns ctx.Err() and leaves no place taken. Later ctx has no effect
// on the Lease, so its deadline may be for the wait alone. A cost above the capacity is a
// [*CapacityError]. Only concurrent limits are accepted; [Limiter.Wait] is for the rest. A cost of
// 0 takes no place.
func (l *Limiter) Acquire(ctx context.Context, key string, cost int64) (*Lease, error) {
	b := l.Bound()
	if err := check(ctx, b, cost, store.OwnClock); err != nil {
		return nil, err
	}
	if err := admits(b, cost, true); err != nil {
		return nil, err
	}
	if cost == 0 {
		return newLease(ctx, &Reservation{}), nil
	}
	var r *Reservation
	err := l.queue(ctx, key, cost, true, func(b *store.Bound, w *waiter) (d Decision, err error) {
		if r, err = l.reserveOrCancel(ctx, b, key, cost, w); err == nil {
			d = r.Decision
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	return newLease(ctx, r), nil
}

// reserveOrCancel takes a place. It leaves none taken if ctx ends while the store decides: a place
// that is granted after that is given back.
func (l *Limiter) reserveOrCancel(ctx context.Context, b *store.Bound, key string, cost int64, w *waiter) (*Reservation, error) {
	type result struct {
		r   *Reservation
		err error
	}
	decided, whole := make(chan result, 1), context.WithoutCancel(ctx)
	go func() {
		var d result
		d.err = panics.Catch(func() error {
			decision, p, err := l.takePlace(whole, b, key, cost, w)
			d.r = &Reservation{Decision: decision, limiter: l, place: p}
			return err
		})
		decided <- d
	}()
	select {
	case d := <-decided:
		panics.Raise(d.err)
		return d.r, d.err
	case <-ctx.Done():
		go func() {
			if d := <-decided; d.err == nil { // otherwise the place is free when its lease ends
				_ = panics.Background("weir: release", func() error { return d.r.Cancel(whole) })
			}
		}()
		return nil, ctx.Err()
	}
}

func newLease(ctx context.Context, r *Reservation) *Lease {
	l := &Lease{reservation: r, until: r.place.start.Add(r.Lease())}
	l.done, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if r.Lease() > 0 {
		l.renewal.Start(l.nextRenewal(true), func() { l.renewal.Run(l.renew) })
	}
	return l
}

// nextRenewal returns the time until the next renewal, which is not after the end of the lease. It
// is shorter after a renewal that failed, so that a store that is back before the end is not too
// late.
func (l *Lease) nextRenewal(renewed bool) time.Duration {
	pause := l.reservation.Lease() / 3
	if !renewed {
		pause = l.reservation.Lease() / 10
	}
	return max(0, min(max(pause, minPoll), time.Until(l.until)))
}

// renew renews the lease, and returns the time until the next renewal.
func (l *Lease) renew() (pause time.Duration) {
	now := time.Now()
	kept, err := false, error(nil)
	if now.Before(l.until) {
		ctx, cancel := context.WithDeadline(l.done, l.until)
		err = panics.Background("weir: renew", func() (err error) {
			kept, err = l.reservation.keep(ctx)
			return err
		})
		cancel()
	}
	if kept {
		l.until = now.Add(l.reservation.Lease())
	}
	if !kept && err == nil || !time.Now().Before(l.until) {
		l.end(ErrLeaseLost)
		return decide.NoRenewal
	}
	return l.nextRenewal(kept)
}

// keep renews the lease of a reservation, and reports whether the lease was unbroken. After a gap
// the place may have had a different holder, even if there is room again.
func (r *Reservation) keep(ctx context.Context) (kept bool, err error) {
	end, known := r.place.taken.End()
	d, err := r.Renew(ctx)
	if err != nil || !d.Allowed {
		return false, err
	}
	return !known || r.place.taken.At < end, nil
}

// Release gives the place back and ends the renewals. It returns [ErrLeaseLost] if the lease ended
// before, and an error of the store if the place could not be given back: Release may then be
// called again, and otherwise the place is free when its lease ends. After a successful Release,
// further calls do nothing. Release does its work also when ctx has ended, but then does not wait
// for a renewal in progress: it returns ctx.Err(), and the place is given back after the renewal.
func (l *Lease) Release(ctx context.Context) error {
	if l == nil {
		return errNilLease
	}
	if l.reservation == nil {
		return nil
	}
	idle := l.renewal.Stop()
	if idle == nil {
		return l.giveBack(ctx)
	}
	select {
	case <-idle:
		return l.giveBack(ctx)
	case <-ctx.Done():
		whole := context.WithoutCancel(ctx)
		go func() {
			<-idle
			_ = panics.Background("weir: release", func() error { return l.giveBack(whole) })
		}()
		return ctx.Err()
	}
}

// giveBack gives the place back, and reports whether the lease was lost. The first call decides
// that.
func (l *Lease) giveBack(ctx context.Context) error {
	cause := errReleased
	if l.reservation.Lease() > 0 && !time.Now().Before(l.until) {
		cause = ErrLeaseLost
	}
	l.end(cause)
	err := l.reservation.Cancel(ctx)
	if errors.Is(context.Cause(l.done), ErrLeaseLost) { //nolint:contextcheck // the first cause, not the error of ctx
		return ErrLeaseLost
	}
	return err
}

// Context returns a copy of parent that ends with the lease: on its loss, with the [context.Cause]
// [ErrLeaseLost], or on its release. Work under the lease should use this context, to stop soon
// after the loss of the place. A stopped process goes on for a moment before its clock shows the
// end of the lease.
func (l *Lease) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	if l == nil {
		cancel(errNilLease)
		return ctx
	}
	if l.done == nil {
		cancel(errReleased)
		return ctx
	}
	context.AfterFunc(l.done, func() { cancel(context.Cause(l.done)) })
	return ctx
}

// poll returns the time after which a waiter of a concurrent limit tries again. A denial reports
// when the oldest lease ends; places are often given back before that.
func poll(retryAfter time.Duration) time.Duration { return min(max(retryAfter, minPoll), maxPoll) }

// admits returns an error for a cost beyond the limit, in Acquire or in Wait.
func admits(b *store.Bound, cost int64, acquire bool) error {
	switch concurrent := b.Limit.Algorithm == Concurrent; {
	case acquire && !concurrent:
		return fmt.Errorf("weir: Acquire under %v, which has no leases; accepted: a concurrent limit, such as "+
			"concurrent 10 lease=30s; Wait is for other limits", b.Limit)
	case concurrent && !acquire:
		return fmt.Errorf("weir: Wait under %v, whose places have to be given back; accepted: Acquire, which returns "+
			"a Lease, or another limit", b.Limit)
	case cost > b.Capacity:
		return &CapacityError{Cost: cost, Capacity: b.Capacity}
	}
	return nil
}
