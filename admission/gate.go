package admission

import (
	"cmp"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/policy"
)

// Limits are what a request must pass: a limiter, or a set of policies.
type Limits interface{ *weir.Limiter | *policy.Set }

// errNoLimits is the error of a nil Gate and of the zero Gate.
var errNoLimits = errors.New("admission: the Gate is nil or the zero Gate, and has no limits; accepted: a Gate that New returned")

// A Gate lets requests pass, or not. It may be used by many goroutines at once. A nil Gate and the
// zero Gate have no limits, and refuse all requests as Undecided.
type Gate struct {
	opts    Options
	limiter *weir.Limiter // nil: set decides
	set     *policy.Set
	names   names
	warned  [warnings]warning
	client  *identity.ClientIP // counts requests by address; nil: not by address
	proxied atomic.Bool        // the warning of warnOfProxy was logged
}

// New returns a Gate. It refuses, as an *OptionError, what makes no sense.
func New[L Limits](limits L, opts Options) (*Gate, error) {
	g := &Gate{opts: opts.withDefaults()}
	var err error
	switch l := any(limits).(type) {
	case *weir.Limiter:
		g.limiter = l
		err = opts.checkFor(l)
	case *policy.Set:
		g.set = l
		err = opts.checkForSet(l)
	}
	if err != nil {
		return nil, err
	}
	g.client = g.opts.Key.ClientIP()
	if g.set != nil {
		g.client = cmp.Or(g.opts.ClientIP, identity.Peer)
	}
	return g, nil
}

// Admit decides on a request. What holds something ([Admission.Held]) must be given to Finish, whatever happens to the request.
func (g *Gate) Admit(r *http.Request) (a Admission) {
	switch {
	case g == nil || g.limiter == nil && g.set == nil:
		return Admission{Outcome: Undecided, Decision: weir.Decision{RetryAfter: retryAfterFailure}, Err: errNoLimits}
	case g.opts.Skip != nil && g.opts.Skip(r):
		a.Outcome = Skipped
	case g.set != nil:
		g.warnOfProxy(r)
		g.check(r, &a)
	default:
		g.warnOfProxy(r)
		g.take(r, &a)
	}
	if a.Outcome == Denied {
		a.askSoon()
	}
	return a
}

// cost is what the Options say that a request costs.
func (g *Gate) cost(r *http.Request) int64 {
	if g.opts.Cost == nil {
		return 1
	}
	return g.opts.Cost(r)
}

func (o Options) withDefaults() Options {
	if o.Key == nil {
		o.Key = identity.Key{o.ClientIP.Source()}
	}
	if o.Hold == 0 {
		o.Hold = DefaultHold
	}
	return o
}
