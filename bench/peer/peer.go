// Package peer puts every limiter that is compared behind one method, so that what is timed differs in nothing else.
package peer

import "time"

// A Limiter answers whether one request of a key may pass now. It may be called by many goroutines at once.
type Limiter interface {
	Allow(key string) bool
}

// A Batcher decides many requests in one call.
type Batcher interface {
	// Batch returns a function that decides one request for each key and returns how many were admitted. The
	// function has buffers of its own: each goroutine needs one.
	Batch() func(keys []string) int
}

// A Budget is the limit that every peer is given: Count units per Period, all of them at once if they are there.
type Budget struct {
	Count  int64
	Period time.Duration
}

// Interval is the time in which one unit comes back.
func (b Budget) Interval() time.Duration { return b.Period / time.Duration(b.Count) }

// PerSecond is how many units come back in a second.
func (b Budget) PerSecond() float64 { return float64(b.Count) / b.Period.Seconds() }

// A Kind says how a peer's figures are to be read.
type Kind int

const (
	// Rival decides, and keeps every key's budget apart: weir's targets are against the fastest of these.
	Rival Kind = iota
	// Ours is weir.
	Ours
	// Blurred keeps keys by an unseeded hash of 64 bits, so that two keys may share a budget.
	Blurred
	// Pacer makes the caller wait and never denies, so it has no denied path.
	Pacer
	// Floor does less than a limiter must; nothing that does all of it is expected to be faster.
	Floor
)

// A Peer is one limiter of the comparison.
type Peer struct {
	// Name is what the tables call it.
	Name string
	// Module is the module path whose version the report states, empty for code of this one.
	Module string
	Kind   Kind
	// New builds a limiter that holds no key yet.
	New func(Budget) (Limiter, error)
}

// Weir is the name of the row that all others are compared with: the public Take, with the full Decision.
const Weir = "weir"

// Bare is the name of the table that does only what can't be left out.
const Bare = "bare table"

// WeirBatch is the name of weir's rows through TakeMany.
const WeirBatch = "weir, batches of 32"

// All returns every peer, in the order of the tables.
func All() []Peer {
	return []Peer{
		{Weir, "", Ours, newWeir},
		{WeirBatch, "", Ours, newWeirBatch},
		{"weir, 0.5 ms clock", "", Ours, newWeirCoarse},
		{"weir, 0.5 ms clock, batches of 32", "", Ours, newWeirCoarseBatch},
		{"x/time/rate in sync.Map", "golang.org/x/time", Rival, newXTime},
		{"x/time/rate in mutex map", "golang.org/x/time", Rival, newXTimeLocked},
		{"throttled", "github.com/throttled/throttled/v2", Rival, newThrottled},
		{"ulule/limiter", "github.com/ulule/limiter/v3", Rival, newUlule},
		{"sethvargo/go-limiter", "github.com/sethvargo/go-limiter", Rival, newSethvargo},
		{"tollbooth", "github.com/didip/tollbooth/v8", Rival, newTollbooth},
		{"httprate", "github.com/go-chi/httprate", Blurred, newHTTPRate},
		{"mennanov/limiters", "github.com/mennanov/limiters", Rival, newMennanov},
		{"juju/ratelimit", "github.com/juju/ratelimit", Rival, newJuju},
		{"failsafe-go", "github.com/failsafe-go/failsafe-go", Rival, newFailsafe},
		{"uber-go/ratelimit", "go.uber.org/ratelimit", Pacer, newUber},
		{Bare, "", Floor, newBare},
		{"harness alone", "", Floor, newNothing},
	}
}

// Key returns the name.
func (p Peer) Key() string { return p.Name }

type nothing struct{ count int64 }

func newNothing(b Budget) (Limiter, error) { return &nothing{b.Count}, nil }

// Allow admits unless the budget is that of the denied path.
func (n *nothing) Allow(key string) bool { return n.count > int64(len(key)) }
