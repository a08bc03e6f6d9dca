package memcached

import (
	"time"

	"github.com/weirlimit/weir/store/swap"
)

const (
	// DefaultClockSkew is how far clocks may be apart unless the options say otherwise.
	DefaultClockSkew = 10 * time.Second
	// DefaultConnections is the most connections to a server unless the options say otherwise.
	DefaultConnections = 64
)

// Options for Open. The zero value is good for most programs.
type Options struct {
	// Prefix separates programs that share a memcached; "" is store.DefaultPrefix.
	Prefix string
	// TrustClientTime lets callers give the time of an operation. All callers must have one clock then.
	// States are kept a day longer than they matter.
	TrustClientTime bool
	// Timeout bounds one operation; 0 means a second. It is also the longest that a server may take to accept a
	// connection, and to answer.
	Timeout time.Duration
	// ClockSkew is how far the wall clocks of the processes may be apart: states are kept so much longer than they matter. 0 means
	// DefaultClockSkew, and less than 0 none.
	ClockSkew time.Duration
	// Connections is the most connections to one server, and the most that are kept idle; 0 means DefaultConnections.
	Connections int
	// MaxCalls is the most operations that may wait for one server at a time; more are refused at once. 0 means
	// store.DefaultMaxCalls.
	MaxCalls int
	// Lazy makes Open return without a connection. Operations on the keys of a server fail as they do on one that is away
	// (see [store.Breaker]) until its settings can be read, which is tried in the background several
	// times a second. Errors in the URL are still errors of Open.
	Lazy bool

	now func() time.Time // for tests; nil is time.Now
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = swap.DefaultTimeout
	}
	if o.ClockSkew == 0 {
		o.ClockSkew = DefaultClockSkew
	}
	if o.Connections <= 0 {
		o.Connections = DefaultConnections
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}
