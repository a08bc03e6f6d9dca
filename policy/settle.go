package policy

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/panics"
	"github.com/weirlimit/weir/store"
)

// Release settles a token at the end of the work: leases are given back, and reservations are
// charged in full. The error is [ErrToken], [ErrSettled], or an error of the store, after which
// Release can be retried: nothing is given back twice. It is ErrSettled also if leases were ended
// but the reservation had expired, so no cost was charged. Release, Commit and Cancel do their work
// also when ctx has ended.
func (s *Set) Release(ctx context.Context, token string) error {
	return s.settle(ctx, token, false, func(h *holding) int64 { return h.units })
}

// Commit is Release for a request with an estimate (Request.Hold), at its real cost: units beyond
// the estimate are taken, as debt where there is no room, and the rest of the estimate is given
// back. A cost from the policy, not the request, stays unchanged. If the reservation has expired,
// nothing is charged, and the error is ErrSettled: Commit can't distinguish an expired token from a
// settled one, and can be retried.
func (s *Set) Commit(ctx context.Context, token string, cost int64) error {
	return s.commit(ctx, token, cost, false)
}

// CommitLate is Commit for an unsettled token: if a reservation has expired, the whole cost is
// charged all the same, as debt where there is no room. So work of any length is charged. Call
// CommitLate once for each token: a second call charges the cost again. After an error, retry with
// Commit.
func (s *Set) CommitLate(ctx context.Context, token string, cost int64) error {
	return s.commit(ctx, token, cost, true)
}

func (s *Set) commit(ctx context.Context, token string, cost int64, late bool) error {
	if cost < 0 || cost > MaxCost {
		return &RequestError{"cost", strconv.FormatInt(cost, 10), "0 to " + strconv.Itoa(MaxCost)}
	}
	return s.settle(ctx, token, late, func(h *holding) int64 {
		if h.said {
			return cost
		}
		return h.units
	})
}

// Cancel gives back all holdings of a request whose work was not done. Without Request.Hold these
// are its leases only.
func (s *Set) Cancel(ctx context.Context, token string) error {
	return s.settle(ctx, token, false, func(*holding) int64 { return 0 })
}

// settle ends all holdings. cost returns the cost of a reservation; if late is set, an expired
// reservation is charged too.
func (s *Set) settle(ctx context.Context, text string, late bool, cost func(*holding) int64) error {
	if s.load() == nil {
		return errNoPolicies
	}
	t, err := s.keys.read(text)
	if err != nil {
		return err
	}
	there, errs := s.endAll(ctx, t.held, func(h *holding) algorithm.Op {
		return algorithm.Op{Kind: algorithm.Commit, Late: late, ID: t.id, Cost: cost(h)}
	})
	var settled, reserved, charged bool // whether anything was there; whether units were reserved, and were there
	for i := range t.held {
		h := &t.held[i]
		settled = settled || there[i]
		if !h.lease && !h.quiet {
			reserved, charged = true, charged || there[i]
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	switch {
	case !settled:
		return ErrSettled
	case reserved && !charged:
		return errReservationOver
	}
	return nil
}

// settleTimeout bounds a settlement and a renewal, for any number of holdings and any timeout of
// the store.
const settleTimeout = 10 * time.Second

// together calls do for each of n holdings, concurrently, in the time of one store call. A panic of
// do is raised again in the caller's goroutine, which can recover.
func together(n int, do func(i int)) {
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

// endAll ends holdings, also when ctx has ended. It reports for each whether it was there, and
// returns the errors of holdings that are not quiet.
func (s *Set) endAll(ctx context.Context, held []holding, commit func(*holding) algorithm.Op) (there []bool, errs []error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	there, failed := make([]bool, len(held)), make([]error, len(held))
	together(len(held), func(i int) { there[i], failed[i] = s.end(ctx, &held[i], commit(&held[i])) })
	for i, err := range failed {
		if err != nil && !held[i].quiet {
			errs = append(errs, err)
		}
	}
	return there, errs
}

// end gives back a lease, or commits a reservation, and reports whether it was there or was charged
// late.
func (s *Set) end(ctx context.Context, h *holding, commit algorithm.Op) (there bool, err error) {
	if h.lease {
		v, now, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Cancel, Cost: h.units, End: h.end})
		return err == nil && v.Granted > 0 && now < h.end, err
	}
	v, _, err := s.do(ctx, h, commit)
	return err == nil && (v.Granted >= 0 || commit.Late && commit.Cost == 0), err
}

// Renew keeps all holdings of a token, leases and reservations (Request.Hold), for their whole time
// again, from now on. It returns the token that replaces the old one. An expired lease or
// reservation is taken again. Without room the error is [ErrSettled], and the returned token, if
// not empty, has the rest: the live leases, and all reservations, which a later Renew may take
// again, and a CommitLate charges. Do not renew a settled token: its units would be taken again.
func (s *Set) Renew(ctx context.Context, text string) (string, error) {
	if s.load() == nil {
		return "", errNoPolicies
	}
	t, err := s.keys.read(text)
	if err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return text, err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	alive, failed := make([]bool, len(t.held)), make([]error, len(t.held))
	together(len(t.held), func(i int) { alive[i], failed[i] = s.renew(ctx, &t.held[i], t.id, t.life) })
	// lost: leases only, because a reservation can be taken again, or charged
	held, lost := t.held[:0], []holding(nil)
	expired := false
	for i, h := range t.held {
		gone := failed[i] == nil && !alive[i]
		if !h.quiet {
			err, expired = errors.Join(err, failed[i]), expired || gone
		}
		if gone && h.lease {
			lost = append(lost, h)
		} else {
			held = append(held, h)
		}
	}
	if err != nil {
		held = append(held, lost...) // reported by the next attempt
	}
	t.held = held
	switch {
	case len(held) == 0:
		return "", ErrSettled
	case err == nil && expired:
		err = ErrSettled
	}
	return s.keys.text(t), err
}

// renew renews a lease or a reservation, and reports success.
func (s *Set) renew(ctx context.Context, h *holding, id, life int64) (alive bool, err error) {
	if !h.lease {
		v, _, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Reserve, ID: id, Cost: h.units, Life: life})
		return err == nil && v.Granted >= 0, err
	}
	v, at, err := s.do(ctx, h, algorithm.Op{Kind: algorithm.Renew, Cost: h.units, End: h.end})
	end, known := store.Outcome{Verdict: v, At: at}.End()
	if alive = err == nil && v.Granted > 0 && known; alive {
		h.end = end
	}
	return alive, err
}

// do carries out an operation on what is held.
func (s *Set) do(ctx context.Context, h *holding, op algorithm.Op) (algorithm.Verdict, int64, error) {
	b, err := s.bound(h)
	if err != nil {
		return algorithm.Verdict{}, 0, err
	}
	return b.DoStamped(ctx, h.key, op, s.now())
}

// bound returns the bound that settles a holding: the limit of the take; or if the configuration no
// longer has this limit, a limit under the state's name; or if the policy is gone, the limit in the
// token.
func (s *Set) bound(h *holding) (*store.Bound, error) {
	if h.local {
		return decide.Local(s.store, h.limit, h.name)
	}
	spec := store.Spec{Name: h.name, Limit: h.limit}
	if b := s.current.Load().bound(spec); b != nil {
		return b, nil
	}
	return store.Bind(s.store, spec, store.Deny)
}

// bound returns the bound of the spec, or of a limit under its name, or nil.
func (v *rules) bound(spec store.Spec) *store.Bound {
	if b := v.own[spec]; b != nil {
		return b
	}
	name, _, _ := strings.Cut(spec.Name, "/")
	r := v.byName[name]
	if r == nil {
		return nil
	}
	var other *store.Bound
	groups := []*group{r.limits, r.candidate}
	for _, plan := range sorted(r.plans) {
		groups = append(groups, r.plans[plan])
	}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, b := range g.limits {
			if b.Spec == spec {
				return b
			}
			if b.Name == spec.Name && other == nil {
				other = b
			}
		}
	}
	return other
}
