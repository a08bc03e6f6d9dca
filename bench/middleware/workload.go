package middleware

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/peer"
)

// years keeps every unit that a run takes outstanding until its end.
const years = 100_000_000 * time.Second

var (
	// ofOne is never used up by one client within maxTime: a billion units, one back every 100 ms.
	ofOne = peer.Budget{Count: 1_000_000_000, Period: years}
	// ofMany gives a unit back every 10 s, so that no client is as good as new before the run is over.
	ofMany = peer.Budget{Count: 10_000_000, Period: years}
	// spent is gone after a client's first request.
	spent = peer.Budget{Count: 1, Period: years}
)

// maxTime is the longest that one workload may run for once, so that its budget lasts.
const maxTime = 3 * time.Second

// A workload is what is asked of a contender.
type workload struct {
	// Name is its column in the tables, and Slug its name in benchstat's format.
	Name, Slug string
	// Twin is the workload of the same clients in which all is admitted; of one in which all is denied it is another.
	Twin string
	// Cores: by a goroutine on every core, else by one.
	Cores bool
	// Server: through a server of net/http, over loopback.
	Server  bool
	budget  peer.Budget
	traffic func() traffic
	// many: all clients are there before the clock starts.
	many bool
}

// denied reports whether every request is to be denied. Else all are to be admitted.
func (w workload) denied() bool { return w.Twin != w.Slug }

// workloads returns all of them, in the order of the tables.
func workloads() []workload {
	one := func() traffic { return traffic(strings.Repeat(string(each(1)), chunk)) }
	all := func() traffic { return uniform(1 << 18) }
	return []workload{
		{Name: "one client", Slug: "one", Twin: "one", budget: ofOne, traffic: one},
		{Name: "one client, all cores", Slug: "one-cores", Twin: "one-cores", Cores: true, budget: ofOne, traffic: one},
		{Name: "100k clients", Slug: "many", Twin: "many", budget: ofMany, traffic: all, many: true},
		{Name: "100k clients, all cores", Slug: "many-cores", Twin: "many-cores", Cores: true, budget: ofMany, traffic: all, many: true},
		{Name: "one client, denied", Slug: "denied", Twin: "one", budget: spent, traffic: one},
		{Name: "one client, all cores, denied", Slug: "denied-cores", Twin: "one-cores", Cores: true, budget: spent, traffic: one},
		{Name: "100k clients, denied", Slug: "denied-many", Twin: "many", budget: spent, traffic: all, many: true},
		{Name: "100k clients, all cores, denied", Slug: "denied-many-cores", Twin: "many-cores", Cores: true, budget: spent, traffic: all, many: true},
		{Name: "over loopback", Slug: "server", Twin: "server", Server: true, budget: ofOne},
	}
}

// Key returns the slug.
func (w workload) Key() string { return w.Slug }

// run builds the contender's middleware around a handler that does nothing, warms it up for a fifth of d, and times it for d.
func (w workload) run(c contender, d time.Duration) (harness.Timing, error) {
	wrap, err := c.New(w.budget)
	if err != nil {
		return harness.Timing{}, err
	}
	h := wrap(http.HandlerFunc(noContent))
	if w.Server {
		return overLoopback(h, d)
	}
	t := w.traffic()
	fill(h, t, w.many)
	w.ask(h, t, d/5)
	return harness.Measure(func() harness.Timing { return w.ask(h, t, d) }), nil
}

// fill makes a request of each client that there will be.
func fill(h http.Handler, t traffic, many bool) {
	if many {
		t = each(clients)
	} else {
		t = t[:addrBytes]
	}
	c, cancel := newCaller(h)
	defer cancel()
	for i := range t.len() {
		c.call(t.addr(i))
	}
}
