package operation

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/audit"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/internal/server/guard"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// A Service runs operations. All protocols of a daemon share one. It may be used by many goroutines
// at once, but not changed after its first use. Limiters are required.
type Service struct {
	// Limiters are the limiters that calls name.
	Limiters *limiters.Set
	// Policies decide on checks. Nil: there are none.
	Policies checks.Policies
	// Users are the users who may connect, with their rights. Nil: everybody may do everything.
	Users *access.Users
	// Audit records refunds, resets and cancellations. Nil: nothing does.
	Audit *audit.Log
	// OnStoreError is the decision on takes and peeks while the store fails, unless the call has its
	// own. Policies have their own. 0: store.Deny, an error.
	OnStoreError store.OnError
	// TrustClientTime lets calls have a time. A client that can set the time can evade any limit.
	TrustClientTime bool
	// Waits reports whether the store waits for an engine.
	Waits bool
	// Timeout bounds how long calls that arrive together wait for the store. 0: 10s for an engine, and
	// otherwise not at all.
	Timeout time.Duration
	// Log receives failures that clients only see as an error without a reason, at most one in each
	// second. Nil: none.
	Log *slog.Logger
	// Panics recovers from panics. Nil: a Panics with Log.
	Panics *guard.Panics

	failures guard.Sampler
}

// WithDefaults sets the fields that are nil, and returns the service.
func (s *Service) WithDefaults() *Service {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Panics == nil {
		s.Panics = guard.NewPanics(s.Log)
	}
	return s
}

// engineTimeout is the Timeout for an engine. Each decision has a shorter bound, which is the
// store's.
const engineTimeout = 10 * time.Second

// Within bounds how long calls wait for the store.
func (s *Service) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case s.Timeout > 0:
		return context.WithTimeout(ctx, s.Timeout)
	case s.Waits:
		return context.WithTimeout(ctx, engineTimeout)
	}
	return ctx, func() {}
}

// NoPolicies is the error of a check without policies.
const NoPolicies = "this server has no policies; weir serve --config weir.yaml has those of the file"

// Restrict lets a check match only policies and keys of a user.
func (s *Service) Restrict(r *policy.Request, u *access.User) {
	if s.Users != nil {
		r.May = func(policy, key string) bool { return u.May(access.Check, policy, key) }
	}
}

// Missing returns the right that a user lacks for a call, or access.None. The right to cancel units
// other than leases is that to refund.
func (s *Service) Missing(c *Call, u *access.User) access.Right {
	right := c.Right
	if c.Kind == algorithm.Cancel && c.Bound != nil && c.Bound.Limit.Algorithm != algorithm.Concurrent {
		right = access.Refund
	}
	if s.Users == nil || u.May(right, c.Name, c.Key) {
		return access.None
	}
	return right
}

// Do runs a call, or decides without the store after a failure. The result is in the call.
func (s *Service) Do(ctx context.Context, c *Call) {
	switch c.Form {
	case Request:
		if c.Given&OnError != 0 {
			ctx = store.WithOnError(ctx, c.OnError)
		}
		c.check(ctx, s.Policies)
	case Settlement:
		c.Next, c.Err = c.settlement.Do(ctx, s.Policies, c.Token, c.Op.Cost, c.Op.Late)
	case Limits:
		c.takeAll(ctx)
	default:
		if c.Given&Time != 0 {
			c.Verdict, c.Took, c.Err = c.Bound.DoStamped(ctx, c.Key, c.Op, c.At)
		} else {
			c.Verdict, c.Err = c.Bound.Do(ctx, c.Key, c.Op, c.At)
		}
	}
	s.DoWithout(ctx, c)
}

// DoWithout decides on a take for which the store has failed, as the call or the service sets. It
// does nothing without an error, and for other operations.
func (s *Service) DoWithout(ctx context.Context, c *Call) {
	if c.Err == nil || c.Form != Limits && (c.Form != OneLimit || c.Op.Kind != algorithm.Take && c.Op.Kind != algorithm.TakeUpTo) {
		return
	}
	on := s.OnStoreError
	if c.Given&OnError != 0 {
		on = c.OnError
	}
	failure := c.Err
	if c.Form == Limits {
		c.takeAllWithout(ctx, on)
	} else if c.without, c.Err = decide.Without(ctx, c.Bound, on, failure); c.Err == nil {
		c.Verdict, c.Err = c.without.Do(ctx, c.Key, c.Op, c.At)
	}
	switch {
	case c.Err != nil && c.without == nil && c.Given&OnError == 0: // the client can't change a share that the limit does not have
		c.Err = failure
	case c.Err == nil:
		c.failure = failure
		if c.Took = c.At; c.At == store.OwnClock {
			c.Took = time.Now().UnixNano()
		}
	}
}

// Count counts a call that was run without an error.
func (s *Service) Count(c *Call, counts *Counts, protocol string) {
	if local, allowed, failure := c.decidedWithout(); failure != nil {
		counts.Undecided++
		switch {
		case local:
			counts.Local++
		case allowed:
			counts.FailedOpen++
		}
		s.LogFailure(protocol+": the store failed, and requests are decided without it", failure)
	}
	c.count(counts)
}

// Record writes the audit record of a call that was run and has one. from is the address of the client,
// and u its user, or nil.
func (s *Service) Record(c *Call, protocol, from string, u *access.User) {
	r := audit.Record{Event: c.Audit, Protocol: protocol, From: from, Name: c.Name, Limit: c.Text, Key: c.Key, Result: audit.OK}
	if c.Bound != nil {
		if r.Limit = c.Bound.Limit.String(); c.Kind == algorithm.Cancel && c.Bound.Limit.Algorithm == algorithm.Concurrent {
			return // the end of a lease
		}
	}
	if c.Kind != algorithm.Reset {
		r.Units = c.Op.Cost
	}
	if u != nil {
		r.User = u.Name()
	}
	if c.Err != nil {
		r.Result = audit.Failed
	}
	s.Audit.Write(r)
}

// LogFailure logs a failure of the store, at most one in each second: when a store is gone, every
// call fails. An open circuit is logged when it opens.
func (s *Service) LogFailure(message string, err error) {
	if !store.IsCircuitOpen(err) && s.failures.PassWithin(time.Now(), time.Second) {
		s.Log.Error(message, "error", store.WithoutKeys(err))
	}
}

// A Fault is the reason for which a call ended in an error.
type Fault uint8

// The faults. All but the first two are of the call, and the client may see the error.
const (
	Undecided  Fault = iota // the store failed; clients see no reason
	Overloaded              // store.ErrOverloaded
	BadLimit                // a *weir.LimitError
	BadRequest              // a *policy.RequestError
	BadToken                // policy.ErrToken
	Settled                 // policy.ErrSettled
	Forbidden               // policy.ErrForbidden
	BadTime                 // weir.ErrTime
	NoTime                  // weir.ErrClientTime
	Unnamed                 // store.ErrUnnamed
)

// FaultOf returns the fault of an error, and the part of the error that the client may see. It counts
// and logs an Undecided one.
func (s *Service) FaultOf(err error, counts *Counts, protocol string) (Fault, error) {
	if request, ok := errors.AsType[*policy.RequestError](err); ok {
		return BadRequest, request
	}
	for fault, target := range faults {
		if target != nil && errors.Is(err, target) {
			return Fault(fault), err
		}
	}
	if limit, ok := errors.AsType[*weir.LimitError](err); ok {
		return BadLimit, limit
	}
	counts.Undecided++
	s.LogFailure(protocol+": no decision could be made", err)
	if errors.Is(err, store.ErrOverloaded) {
		return Overloaded, nil
	}
	return Undecided, nil
}

var faults = [...]error{
	BadToken: policy.ErrToken, Settled: policy.ErrSettled, Forbidden: policy.ErrForbidden, BadTime: weir.ErrTime, NoTime: weir.ErrClientTime, Unnamed: store.ErrUnnamed,
}

// TimeRange describes the times that every limit accepts.
const TimeRange = "in the years 1866 to 2074"

// Label returns the label of a call in the metrics.
func (c *Call) Label() latency.Operation {
	switch c.Form {
	case Limits:
		return latency.TakeAll
	case Request:
		return latency.Check
	case Settlement:
		return latency.Settle
	default:
		return latency.Of(c.Op)
	}
}
