package swap

import "time"

// DefaultTimeout bounds an operation of a store that is told no other time.
const DefaultTimeout = time.Second

// Options for New. The zero value is good for an engine that decides by each process's clock.
type Options struct {
	// Prefix separates programs that share an engine; "" is store.DefaultPrefix. Bind refuses one that
	// store.CheckPrefix does not accept.
	Prefix string
	// TrustClientTime lets callers tell the time of an operation. All of them must have one clock then. States are kept a
	// day longer than they matter, because that clock is not the engine's.
	TrustClientTime bool
	// SharedClock says that Cell.Now is of one clock for all processes. Only then are states healed that are further
	// ahead than their limit allows (see algorithm.Program.Heal), and not where callers tell the time.
	SharedClock bool
	// Timeout bounds one operation, queueing included; 0 or less means DefaultTimeout.
	Timeout time.Duration
	// Grace is how much longer than they matter states are kept: by as much as the clocks that decide may differ.
	Grace time.Duration
}

// trustedGrace is how much longer states are kept whose time is the callers'.
const trustedGrace = 24 * time.Hour

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.Grace = max(0, o.Grace)
	if o.TrustClientTime {
		o.Grace += trustedGrace
	}
	return o
}
