package replay

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

// A tally is what one limit did.
type tally struct {
	limit           weir.Limit
	limiter         *weir.Limiter
	denied, delayed int64
	longestDelay    time.Duration
	clients         []denials // by the client's number, up to the last that was denied
}

// denials are what one client was denied.
type denials struct {
	count       int64
	first, last int64 // seconds since the Unix epoch
}

// newTally has a separate store, without a bound: the clients are bounded. (Equal limits on one
// store would share their states.)
func newTally(limit weir.Limit) (*tally, error) {
	limiter, err := weir.New(limit, weir.WithStore(memory.New(memory.Options{MaxBytes: math.MaxInt64})))
	if err != nil {
		return nil, err
	}
	return &tally{limit: limiter.Limit(), limiter: limiter}, nil
}

func (t *tally) decide(ctx context.Context, key string, client int32, cost int64, now time.Time) (bool, error) {
	d, err := t.limiter.TakeAt(ctx, key, cost, now)
	switch {
	case err != nil:
		return false, err
	case !d.Allowed:
		t.deny(client, now.Unix())
	case d.Delay > 0:
		t.delayed++
		t.longestDelay = max(t.longestDelay, d.Delay)
	}
	return d.Allowed, nil
}

func (t *tally) deny(client int32, second int64) {
	t.denied++
	if missing := int(client) + 1 - len(t.clients); missing > 0 {
		t.clients = append(t.clients, make([]denials, missing)...)
	}
	c := &t.clients[client]
	if c.count == 0 {
		c.first = second
	}
	c.count, c.last = c.count+1, second
}

// report returns the tally with the clients denied most.
func (t *tally) report(c *clients, key Key, requests int64, top int) LimitReport {
	var numbers []int32 // of the clients that were denied
	for n, d := range t.clients {
		if d.count > 0 {
			numbers = append(numbers, int32(n))
		}
	}
	slices.SortFunc(numbers, func(a, b int32) int {
		switch {
		case t.clients[a].count != t.clients[b].count:
			return int(t.clients[b].count - t.clients[a].count)
		case c.requests[a] != c.requests[b]:
			return int(c.requests[b] - c.requests[a])
		}
		return strings.Compare(c.keys[a], c.keys[b])
	})
	l := LimitReport{
		Limit: t.limit, Note: t.limit.Note(), Denied: t.denied, ClientsDenied: int64(len(numbers)), Top: []ClientReport{},
		Delayed: t.delayed, LongestDelayUS: int64((t.longestDelay + time.Microsecond - 1) / time.Microsecond),
	}
	if requests > 0 {
		l.DeniedShare = float64(t.denied) / float64(requests)
	}
	for _, n := range numbers[:min(top, len(numbers))] {
		d := t.clients[n]
		client := ClientReport{Requests: c.requests[n], Denied: d.count, First: at(d.first), Last: at(d.last)}
		for _, part := range key.split(c.keys[n]) {
			client.Client = append(client.Client, legible(part))
		}
		l.Top = append(l.Top, client)
	}
	return l
}
