package load

import (
	"time"

	"github.com/weirlimit/weir/bench/peer"
)

// Keys is how many different keys the workloads of many keys have.
const Keys = 1_000_000

// requests is the length of a stream, which is gone through again and again.
const requests = 1 << 21

// years keeps every unit that a run takes outstanding until its end. It is the period of all budgets.
const years = 100_000_000 * time.Second

var (
	// hot is never exhausted by one key within MaxTime: a billion units, one back every 100 ms.
	hot = peer.Budget{Count: 1_000_000_000, Period: years}
	// many gives a unit back every 10 s, so that no key is as good as new, and none may be forgotten, before
	// the run is over.
	many = peer.Budget{Count: 10_000_000, Period: years}
	// spent is gone after the first request.
	spent = peer.Budget{Count: 1, Period: years}
)

// MaxTime is the longest that one workload may run for once, so that its budget lasts.
const MaxTime = 3 * time.Second

// A Workload is what is asked of a limiter.
type Workload struct {
	// Name is its column in the tables.
	Name string
	// Slug is its name in benchstat's format.
	Slug string
	// Cores: by a goroutine on every core, else by one.
	Cores bool
	// Denied: every request is to be denied, else none.
	Denied bool
	// Filled: all keys are there before the clock starts.
	Filled bool
	budget peer.Budget
	stream func() Stream
}

// Workloads returns all of them, in the order of the tables.
func Workloads() []Workload {
	one := func() Stream { return Same(1 << 10) }
	return []Workload{
		{Name: "hot key", Slug: "hot", budget: hot, stream: one},
		{Name: "hot key, all cores", Slug: "hot-cores", Cores: true, budget: hot, stream: one},
		{Name: "1M uniform", Slug: "uniform", Filled: true, budget: many, stream: func() Stream { return Uniform(requests, Keys) }},
		{Name: "1M Zipf(1.1), all cores", Slug: "zipf-cores", Filled: true, Cores: true, budget: many, stream: func() Stream { return Zipf(requests, Keys) }},
		{Name: "denied", Slug: "denied", Denied: true, budget: spent, stream: one},
		{Name: "denied, all cores", Slug: "denied-cores", Denied: true, Cores: true, budget: spent, stream: one},
	}
}

// Key returns the slug.
func (w Workload) Key() string { return w.Slug }
