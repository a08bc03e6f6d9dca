package postgres

import (
	"cmp"
	"fmt"
	"time"

	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

const (
	// DefaultTable is the table of stores that name none.
	DefaultTable = "weir_states"
	// DefaultSweepEvery is the pause between two walks through the table that remove states that say nothing more.
	DefaultSweepEvery = time.Minute
)

// Options for Open and New. The zero value is good for most programs.
type Options struct {
	// Prefix separates programs that share a table; "" is store.DefaultPrefix.
	Prefix string
	// Table is where the states are: a name, or schema.name, of letters, digits and _, in the case in which it is written. "" is DefaultTable.
	Table string
	// Unlogged makes the table, if it is not there yet, one without a write-ahead log. That is faster, and it is empty after a
	// crash of the server: all limits then start afresh.
	Unlogged bool
	// NoMigrate never makes the table: operations return an error if it is missing. Migration returns the
	// statements that make it.
	NoMigrate bool
	// TrustClientTime lets callers give the time of an operation. All callers must have one clock then.
	// States are kept a day longer than they matter.
	TrustClientTime bool
	// Timeout bounds one operation, the wait for a connection included; 0 or less means a second. All that a TakeAll does is
	// one operation.
	Timeout time.Duration
	// MaxCalls is the most operations that may wait for the server at a time; more are refused at once. 0 means
	// store.DefaultMaxCalls.
	MaxCalls int
	// Lazy makes Open return without a connection. Operations fail as they do on a server that is away (see
	// [store.Breaker]) until the server can be reached and passes Check, which is tried in the background several times a
	// second. Errors in the URL are still errors of Open.
	Lazy bool
	// SweepEvery is the pause between two walks through the table, by one of the processes that share it; 0 means
	// DefaultSweepEvery, and less than 0 that this one never does it.
	SweepEvery time.Duration

	sweeping  sweeping // for tests
	turnAfter int      // for tests; 0 means 12
}

// sweeping is how a walk is done.
type sweeping struct {
	batch int           // rows that are looked at together
	pause time.Duration // between two batches
	grace time.Duration // how much longer than it matters a state is left alone
}

// The grace is for a server's clock that is set back, and for a standby that takes over with a clock that
// is behind: a row that has expired for one of them may still live for the other.
var gentle = sweeping{batch: 500, pause: 20 * time.Millisecond, grace: time.Minute}

func (o Options) withDefaults() Options {
	if o.Table == "" {
		o.Table = DefaultTable
	}
	if o.Timeout <= 0 {
		o.Timeout = swap.DefaultTimeout
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = DefaultSweepEvery
	}
	o.turnAfter = cmp.Or(o.turnAfter, 12)
	if o.sweeping == (sweeping{}) {
		o.sweeping = gentle
	}
	return o
}

func (o Options) check() (table, error) {
	if err := store.CheckPrefix(o.Prefix); err != nil {
		return "", err
	}
	if o.MaxCalls < 0 {
		return "", fmt.Errorf("postgres: max calls is %d; accepted: more than 0, or 0 for %d", o.MaxCalls, store.DefaultMaxCalls)
	}
	return parseTable(o.Table)
}
