package policy

import (
	"context"
	"strconv"
	"strings"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// Release settles a token at the end of the work: leases are given back, and reservations are
// charged in full. The error is [ErrToken], [ErrSettled], or an error of the store, after which
// Release can be retried: nothing is given back twice. It is ErrSettled also if leases were ended
// but the reservation had expired, so no cost was charged. Release, Commit and Cancel do their work
// also when ctx has ended.
func (s *Set) Release(ctx context.Context, token string) error {
	return s.settle(ctx, token, false, func(h *decide.Holding) int64 { return h.Units })
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
	return s.settle(ctx, token, late, func(h *decide.Holding) int64 {
		if h.Stated {
			return cost
		}
		return h.Units
	})
}

// Cancel gives back all holdings of a request whose work was not done. Without Request.Hold these
// are its leases only.
func (s *Set) Cancel(ctx context.Context, token string) error {
	return s.settle(ctx, token, false, func(*decide.Holding) int64 { return 0 })
}

// settle ends all holdings. cost returns the cost of a reservation; if late is set, an expired
// reservation is charged too.
func (s *Set) settle(ctx context.Context, text string, late bool, cost func(*decide.Holding) int64) error {
	if s.load() == nil {
		return errNoPolicies
	}
	t, err := s.keys.read(text)
	if err != nil {
		return err
	}
	d, err := s.settler().Settle(ctx, t.held, func(h *decide.Holding) algorithm.Op {
		return algorithm.Op{Kind: algorithm.Commit, Late: late, ID: t.id, Cost: cost(h)}
	})
	switch {
	case err != nil:
		return err
	case !d.Some:
		return ErrSettled
	case d.Reserved && !d.Charged:
		return errReservationOver
	}
	return nil
}

// giveBack is the operation of holdings that are leases, which a settlement always gives back.
func giveBack(*decide.Holding) algorithm.Op { return algorithm.Op{} }

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
	var gone bool
	t.held, gone, err = s.settler().Renew(ctx, t.held, t.id, t.life)
	switch {
	case len(t.held) == 0:
		return "", ErrSettled
	case err == nil && gone:
		err = ErrSettled
	}
	return s.keys.text(t), err
}

func (s *Set) settler() decide.Settler { return decide.Settler{Bound: s.bound, Now: s.now} }

// bound returns the bound that settles a holding: the limit of the take; or if the configuration no
// longer has this limit, a limit under the state's name; or if the policy is gone, the limit in the
// token.
func (s *Set) bound(h *decide.Holding) (*store.Bound, error) {
	if h.Local {
		return decide.Local(s.store, h.Limit, h.Name)
	}
	spec := store.Spec{Name: h.Name, Limit: h.Limit}
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
