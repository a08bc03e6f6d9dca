package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A budget is a limit and the keys of the load.
type budget struct {
	name, limit string
	keys        int
	// exact states that no unit comes back during a test. The units charged by the engine can then be
	// counted afterwards.
	exact bool
}

var budgets = []budget{
	{"spend", "100000/87600h", 2, true},
	{"", "100000/87600h", 2, true},
	{"full", "50/87600h", 40, true},
	{"rate", "100/1s", 1, false},
	{"window", "sliding-window 100/1s", 1, false},
	{"", "fixed-window 100/1s", 1, false},
	{"log", "sliding-log 60/1s", 1, false},
	{"slots", "concurrent 10 lease=2s", 2, false},
	{"", "2/87600h", 10_000, false},
	{"left", "100000/87600h", 2, true},
	{"right", "100000/87600h", 2, true},
	{"both", "100000/87600h", 2, true},
	{"gate", "100/1s", 1, false},
	{"hold", "100000/87600h", 2, true},
}

// Budgets with a role: only joint takes charge left and right, and only reservations charge hold.
// A reservation is of estimate units, and is settled at 1.
const (
	left, right, hold = 9, 10, 13
	estimate          = 3
)

// mix lists the kinds of calls. Each kind takes from a budget, or jointly from two.
var mix = [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {left, right}, {11, 12}, {hold}}

// An effect is the change that a call made, as far as its result shows.
type effect uint8

const (
	admitted effect = iota
	denied
	refused // the call failed and changed nothing, because the store does not serve calls
	nothing // the call failed and changed nothing
	unknown // the call failed
	effects
)

// A call is a request of the load. Times are in nanoseconds since the Unix epoch.
type call struct {
	Kind       uint8 // index in mix
	Keys       [2]int32
	Effect     effect
	Start, End int64
	Release    int64         // start of the release of a concurrent limit or of the settlement; 0 if none
	Took       time.Duration // of the store; the longer of reservation and settlement
}

// A report is the result of the load of a process.
type report struct {
	Calls      []call
	Errors     map[string]int // by text; some
	Doubts     map[string]int // the same, of calls of unknown effect only
	Peak, Left int            // additional goroutines: most under load, and after Close
	Stacks     string         // of all goroutines, if some are left
}

// A progress counts ended calls.
type progress struct{ Ended, Admitted, Failed, Streak int64 }

// A counter makes a progress.
type counter struct{ ended, admitted, failed, streak atomic.Int64 }

func (c *counter) load() progress {
	return progress{c.ended.Load(), c.admitted.Load(), c.failed.Load(), c.streak.Load()}
}

// An opened store can be closed.
type opened interface {
	store.Store
	Close() error
}

const (
	goroutines = 6                // of a process that call
	pace       = time.Millisecond // pause between two calls of a goroutine, on average
	pollEvery  = 10 * time.Millisecond
	maxErrors  = 20 // texts of a goroutine
)

// polls is the most waits for goroutines to end after Close.
var polls = 3000

// drive takes from the budgets until stop is closed, and closes the store. before is the number of
// goroutines without it.
func drive(s opened, before int, seed uint64, count *counter, stop <-chan struct{}) (*report, error) {
	parts, err := bind(s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	r := &report{Errors: map[string]int{}, Doubts: map[string]int{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(g)))
			var calls []call
			failures, doubts := map[string]int{}, map[string]int{}
			for !over(stop, time.Duration(random.Int64N(int64(2*pace)))) {
				c, err := request(parts, random)
				calls = append(calls, c)
				count.add(c.Effect)
				note(failures, err)
				if c.Effect == unknown {
					note(doubts, err)
				}
				if g == 0 {
					r.Peak = max(r.Peak, runtime.NumGoroutine()-before)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			r.Calls = append(r.Calls, calls...)
			merge(r.Errors, failures)
			merge(r.Doubts, doubts)
		})
	}
	wg.Wait()
	err = s.Close()
	for range polls {
		if r.Left = runtime.NumGoroutine() - before; r.Left <= 0 {
			return r, err
		}
		time.Sleep(pollEvery)
	}
	stacks := make([]byte, 64<<10)
	r.Stacks = string(stacks[:runtime.Stack(stacks, true)])
	return r, err
}

// note counts an error by its text, unless there are too many texts.
func note(counts map[string]int, err error) {
	if err == nil {
		return
	}
	text := ports.ReplaceAllString(err.Error(), ":…")
	if _, seen := counts[text]; seen || len(counts) < maxErrors {
		counts[text]++
	}
}

var ports = regexp.MustCompile(`:\d{4,5}\b`)

func merge(to, from map[string]int) {
	for text, n := range from {
		to[text] += n
	}
}

// over waits, and reports whether stop is closed.
func over(stop <-chan struct{}, wait time.Duration) bool {
	select {
	case <-stop:
		return true
	case <-time.After(wait):
		return false
	}
}

func (c *counter) add(e effect) {
	c.ended.Add(1)
	if e >= refused {
		c.failed.Add(1)
		c.streak.Store(0)
		return
	}
	c.streak.Add(1)
	if e == admitted {
		c.admitted.Add(1)
	}
}

// bind returns a part for each budget.
func bind(s store.Store) (parts []store.Part, err error) {
	for _, b := range budgets {
		limit := algorithm.MustParseLimit(b.limit)
		binding, err := s.Bind(store.Spec{Limit: limit, Name: b.name})
		if err != nil {
			return nil, err
		}
		parts = append(parts, store.Part{Store: s, Binding: binding, Limit: limit, Name: b.name, Cost: 1})
	}
	return parts, nil
}

// request makes a call of a random kind on random keys.
func request(parts []store.Part, random *rand.Rand) (c call, err error) {
	ctx := context.Background() // the store's own timeout bounds the call
	kind := random.IntN(len(mix))
	c.Kind = uint8(kind)
	var asked []store.Part
	for i, b := range mix[kind] {
		c.Keys[i] = int32(random.IntN(budgets[b].keys))
		p := parts[b]
		p.Key = key(b, c.Keys[i])
		asked = append(asked, p)
	}
	c.Start = time.Now().UnixNano()
	if kind := mix[kind]; kind[0] == hold {
		err := c.reserve(ctx, asked[0], random.Int64())
		return c, err
	} else if len(kind) > 1 {
		outcomes, err := store.TakeAll(ctx, asked, store.OwnClock)
		c.ended(classify(err == nil && outcomes[0].Granted > 0 && outcomes[1].Granted > 0, err))
		return c, err
	}
	taken, err := asked[0].Take(ctx, store.OwnClock)
	c.ended(classify(taken.Granted > 0, err))
	if c.Effect == admitted && taken.Limit.Algorithm == algorithm.Concurrent {
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
		c.Release = time.Now().UnixNano()
		_, err = taken.GiveBack(ctx, store.OwnClock)
	}
	return c, err
}

// reserve makes a reservation and settles it. Its effect is unknown unless it was settled.
func (c *call) reserve(ctx context.Context, p store.Part, id int64) error {
	p.ID, p.Life, p.Cost = id, int64(time.Hour), estimate
	taken, err := p.Take(ctx, store.OwnClock)
	c.ended(classify(taken.Granted > 0, err))
	if c.Effect != admitted {
		return err
	}
	reserved := c.End
	c.Release = time.Now().UnixNano()
	v, err := p.Binding.Do(ctx, p.Key, algorithm.Op{Kind: algorithm.Commit, ID: id, Cost: 1}, store.OwnClock)
	c.ended(classify(v.Granted > 0, err))
	c.Took = max(time.Duration(reserved-c.Start), time.Duration(c.End-reserved))
	if c.Effect != admitted {
		c.Effect = unknown
	}
	return err
}

// ended records the end of a call.
func (c *call) ended(e effect) {
	c.Effect, c.End = e, time.Now().UnixNano()
	c.Took = time.Duration(c.End - c.Start)
}

func classify(allowed bool, err error) effect {
	switch {
	case errors.Is(err, store.ErrUnavailable) && errors.Is(err, store.ErrNothingDone):
		return refused
	case errors.Is(err, store.ErrNothingDone):
		return nothing
	case err != nil:
		return unknown
	case allowed:
		return admitted
	}
	return denied
}

// key returns a key of a budget.
func key(budget int, i int32) string { return fmt.Sprint(budget, "-", strconv.Itoa(int(i))) }
