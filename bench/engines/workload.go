package engines

import (
	"time"

	"github.com/weirlimit/weir/bench/load"
)

// requests is the length of a stream of many keys, which is gone through again and again.
const requests = 1 << 21

// years keeps every unit that a run takes outstanding until its end.
const years = 100_000_000 * time.Second

// A workload is what is asked of a contender.
type workload struct {
	// Name heads its tables, and Slug is its short name.
	Name, Slug string
	// denied: every request is to be denied, else none.
	denied bool
	// filled: all keys are there before the first measurement.
	filled bool
	budget budget
	// stream draws the requests, on so many keys.
	stream func(keys int) load.Stream
}

// The keys after the last of many are the hot one and the exhausted one, so that no two workloads meet on a key: for
// redis_rate and throttled a key is one budget, whatever the limit.
func single(after int) func(int) load.Stream {
	return func(keys int) load.Stream {
		s := load.Each(keys + after + 1)
		return s[(keys+after)*load.KeyBytes:]
	}
}

// workloads returns all of them, in the order of the tables. No state is as good as new (and may be forgotten) before the
// run is over: a unit comes back every 100 ms of a billion on the hot key, every hour of a thousand on many keys.
func workloads() []workload {
	return []workload{
		{Name: "one hot key", Slug: "hot", budget: budget{1_000_000_000, years}, stream: single(0)},
		{Name: "many keys", Slug: "many", filled: true, budget: budget{1000, 1000 * time.Hour}, stream: func(keys int) load.Stream { return load.Uniform(requests, keys) }},
		{Name: "one hot key, denied", Slug: "denied", denied: true, budget: budget{1, years}, stream: single(1)},
	}
}

// Key returns the slug.
func (w workload) Key() string { return w.Slug }
