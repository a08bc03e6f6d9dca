package operation

import (
	"context"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/checks"
	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/store"
)

// A Call is an operation with its arguments, and after Do its result. The zero Call is not valid:
// see Begin.
type Call struct {
	*Operation

	// These are of OneLimit; At, Given and OnError are of the other forms too.
	Bound   *store.Bound
	Text    string // of the limit, as the client wrote it; only the audit log uses it
	Key     string
	Name    string // of the limiter
	Op      algorithm.Op
	At      int64 // nanoseconds since 1970, or store.OwnClock
	Given   Argument
	OnError store.OnError // if it is in Given
	Exact   bool          // a TakeUpTo is allowed if it granted the whole cost, and not counted without a cost

	Parts   []Part          // of Limits
	Request *checks.Request // of Request
	Token   string          // of Settlement, with Cost and Late of Op

	// The result. The Verdict of Limits and Request has only Granted.
	Verdict  algorithm.Verdict
	Took     int64            // the time at which it took effect, if it is known: after Time, or without the store
	Outcomes []store.Outcome  // of the Parts
	Checked  *policy.Decision // of a Request
	Next     string           // the token in place of Token, or "", also with an Err
	Err      error

	without *store.Bound // decided in place of the store
	failure error        // of the store, if it did not decide
}

// Begin makes the call one of an operation, without arguments, for now.
func (c *Call) Begin(o *Operation) {
	*c = Call{Operation: o, At: store.OwnClock}
	if c.Op.Kind = o.Kind; o.Accepts&Cost != 0 {
		c.Op.Cost = 1
	}
}

// Set sets an argument that is a number of its Span, or a flag. Times are in the unit. ok is false
// for a time that no limit reaches.
func (c *Call) Set(a Argument, n int64, unit time.Duration) (ok bool) {
	switch a {
	case Cost:
		c.Op.Cost = n
	case At:
		perSecond := int64(time.Second / unit)
		if c.At, ok = store.Nanoseconds(time.Unix(n/perSecond, n%perSecond*int64(unit))); !ok {
			return false
		}
	case End:
		c.Op.End = n * int64(unit)
	case ID:
		c.Op.ID = n
	case Life:
		c.Op.Life = n * int64(unit)
	case Late:
		c.Op.Late = true
	}
	c.Given |= a
	return true
}

// Missing returns the first of the required arguments that the call lacks, with a description, or 0.
func (c *Call) Missing(required Argument) (a Argument, accepted string) {
	for _, r := range requirements {
		if required&r.a != 0 && (c.Given&r.a == 0 || r.a == Name && c.Name == "") {
			return r.a, r.accepted
		}
	}
	return 0, ""
}

var requirements = []struct {
	a        Argument
	accepted string
}{
	{End, "the time of the take and its reset_after"},
	{ID, "a number that the client chooses at random"},
	{Life, "for how long the reservation can be settled"},
	{Name, "of the limiter under which reservations are kept"},
}

// check has the policies decide on the request. The verdict is that of the request: it is granted or not.
func (c *Call) check(ctx context.Context, p checks.Policies) {
	d, err := p.Check(ctx, &c.Request.Request)
	c.Checked, c.Err = &d, err
	c.Verdict.Granted = -1
	if c.Checked.Allowed {
		c.Verdict.Granted = 0
	}
}

// count counts the decision of a call.
func (c *Call) count(counts *Counts) {
	switch {
	case !c.Counted, c.Exact && c.Op.Cost == 0:
	case c.Exact:
		counts.Decide(c.Verdict.Granted == c.Op.Cost)
	default:
		counts.Decide(c.Verdict.Granted >= 0)
	}
}

// GrantedUnits returns the number of units of the result.
func (c *Call) GrantedUnits() int64 { return max(0, c.Verdict.Granted) }

// Decision returns the decision of a OneLimit.
func (c *Call) Decision() algorithm.Decision {
	if c.without != nil {
		return c.without.Decision(c.Verdict)
	}
	return c.Bound.Decision(c.Verdict)
}

// decidedWithout returns the failure of the store without which the call was decided, or nil.
func (c *Call) decidedWithout() (local, allowed bool, failure error) {
	if c.Form == Request {
		return c.Checked.Local, c.Checked.Allowed, c.Checked.Err
	}
	return c.without != nil && c.without.Local, true, c.failure
}

// A Source is who decided.
type Source int64

// The sources, as the Redis protocol has them after ONERROR.
const (
	ByStore       Source = iota
	ByNobody             // because the store failed
	ByThisProcess        // by local limits
)

// Source returns who decided.
func (c *Call) Source() Source {
	switch local, _, failure := c.decidedWithout(); {
	case failure == nil:
		return ByStore
	case local:
		return ByThisProcess
	}
	return ByNobody
}

// Keys yields the keys of a call: of two calls with one key in common, the second finds what the
// first has left. p are the policies of the service.
func (c *Call) Keys(p checks.Policies) []string {
	switch c.Form {
	case Request:
		return p.Keys(&c.Request.Request)
	case Settlement:
		return []string{c.Token}
	case Limits:
		keys := make([]string, len(c.Parts))
		for i := range c.Parts {
			keys[i] = c.Parts[i].Key
		}
		return keys
	default:
		return []string{c.Key}
	}
}

// Batches reports whether the call can be decided together with others of its Bound.
func (c *Call) Batches() bool {
	return c.Form == OneLimit && c.Op.Kind == algorithm.Take && c.At == store.OwnClock && c.Given&Time == 0 && c.Bound.Batcher != nil
}

// WholeUnits returns d in units, rounded up: a client that comes back a moment too early is denied
// again. weir.Never is -1.
func WholeUnits(d, unit time.Duration) int64 {
	if d == algorithm.Never {
		return -1
	}
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
