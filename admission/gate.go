package admission

import (
	"cmp"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/identity"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/policy"
)

// Limits decide on requests: a limiter, or a set of policies.
type Limits interface{ *weir.Limiter | *policy.Set }

// errNoLimits is the error of a nil Gate and of the zero Gate.
var errNoLimits = errors.New("admission: the Gate is nil or the zero Gate, and has no limits; accepted: a Gate that New returned")

// A Gate decides on requests. It may be used by many goroutines at once. A nil Gate and the zero Gate
// have no limits, and refuse all requests as Undecided.
type Gate struct {
	opts    Options
	limiter *weir.Limiter // nil: set decides
	set     *policy.Set
	client  *identity.ClientIP // counts requests by address; nil: not by address
	samples [warnings]decide.Sampler
	proxied atomic.Bool // the warning of warnOfProxy was logged
}

// New returns a Gate. It refuses invalid options with an *OptionError.
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

// Admit decides on a request. If the request holds anything ([Admission.Held]), the caller gives the
// Admission to Finish in every case.
func (g *Gate) Admit(r *http.Request) (a Admission) {
	switch {
	case g == nil || g.limiter == nil && g.set == nil:
		return Admission{Outcome: Undecided, Decision: weir.Decision{RetryAfter: decide.RetryAfterFailure}, Err: errNoLimits}
	case g.opts.Skip != nil && g.opts.Skip(r):
		a.Outcome = Skipped
		return a
	}
	if g.client != nil && !g.proxied.Load() {
		if field := g.client.Ignored(r); field != "" {
			g.warnOfProxy(r, field)
		}
	}
	var decided bool
	if g.set != nil {
		decided = g.check(r, g.opts.ClientIP.Addr(r), &a)
	} else {
		decided = g.take(r, g.opts.Key.Of(r), &a)
	}
	if a.Err != nil || !a.Decision.Allowed {
		g.conclude(r, &a, decided)
	}
	return a
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
