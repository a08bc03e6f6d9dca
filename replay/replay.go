// Package replay runs recorded traffic against limits, to say what they would have done to it.
//
// It reads access logs, puts their requests in the order of time, and gives each to a real [weir.Limiter] at the time
// that the log states. What it reports is what the limiter decided.
//
//	logs, err := replay.Open([]string{"access.log"}, os.Stdin)
//	report, err := replay.Run(ctx, logs.List, replay.Options{Limits: limits, Window: replay.DefaultWindow, Top: 10})
//	err = report.WriteText(os.Stdout)
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/weirlimit/weir"
)

// Defaults and bounds of Options.
const (
	// DefaultWindow is for logs whose minutes are in order and whose seconds are not, and for requests that are
	// logged at their end with the time of their begin, if they take no longer.
	DefaultWindow = time.Minute
	// DefaultMaxClients is how many clients are told apart unless Options says otherwise.
	DefaultMaxClients = 10_000_000
	// MaxWindow is the longest Window.
	MaxWindow = 24 * time.Hour
	// MaxLimits is how many limits run side by side at most.
	MaxLimits = 32
	// MaxTop is how many clients are reported for each limit at most.
	MaxTop        = 100_000
	maxMaxClients = math.MaxInt32 - 1
)

// Options say what to run logs against, and what to report.
type Options struct {
	// Limits are run side by side, each on all of the traffic: 1 to MaxLimits of them.
	Limits []weir.Limit
	// Key identifies clients. The zero value is client_ip.
	Key Key
	// Cost is what each request takes, at most the capacity of each limit. 0 means 1.
	Cost int64
	// Window is how far out of order the lines of a log may be: whole seconds, at most MaxWindow. A request that is
	// further behind is decided at the newest time that its log has shown, and reported as late; so is one that is
	// further ahead of those around it, and reported as ahead.
	Window time.Duration
	// Top is how many clients to report for each limit, those denied most: 0 to MaxTop.
	Top int
	// Bucket is the width of the timeline's buckets in whole seconds. 0 chooses one that makes at most 60 of them.
	Bucket time.Duration
	// MaxClients bounds the memory: more clients than that are an error. 0 means DefaultMaxClients.
	MaxClients int
	// Progress, if set, is called with the number of bytes that were read since it was called last.
	Progress func(bytes int)
}

// check fills in the defaults, and refuses what makes no sense.
func (o Options) check() (Options, error) {
	o.Key = Key{o.Key.all()}
	o.Cost, o.MaxClients = cmp.Or(o.Cost, 1), cmp.Or(o.MaxClients, DefaultMaxClients)
	switch {
	case len(o.Limits) < 1 || len(o.Limits) > MaxLimits:
		return o, refuse("number of limits", len(o.Limits), "1 to %d", MaxLimits)
	case o.Cost < 1:
		return o, refuse("cost", o.Cost, "1 or more")
	case o.Window < 0 || o.Window > MaxWindow || o.Window%time.Second != 0:
		return o, refuse("window", o.Window, "whole seconds, 0s to %v", MaxWindow)
	case o.Top < 0 || o.Top > MaxTop:
		return o, refuse("top", o.Top, "0 to %d", MaxTop)
	case o.Bucket < 0 || o.Bucket > maxBucket || o.Bucket%time.Second != 0:
		return o, refuse("bucket", o.Bucket, "whole seconds, 1s to %v, or 0s to have it chosen", maxBucket)
	case o.MaxClients < 1 || o.MaxClients > maxMaxClients:
		return o, refuse("max-clients", o.MaxClients, "1 to %d", maxMaxClients)
	}
	return o, o.checkLimits()
}

func (o Options) checkLimits() error {
	for _, l := range o.Limits {
		if err := l.Validate(); err != nil {
			return err
		}
		if most := l.Capacity(); o.Cost > most {
			return refuse("cost", o.Cost, "1 to %d, the capacity of limit %s", most, l)
		}
	}
	return nil
}

func refuse(field string, value any, accept string, args ...any) error {
	return fmt.Errorf("replay: %s is %v; accepted: %s", field, value, fmt.Sprintf(accept, args...))
}

// A run is the state of Run.
type run struct {
	options  Options
	clients  clients
	tallies  []*tally
	timeline timeline
	report   Report
}

// Run reads the logs to their end and decides their requests in the order of time, those of several logs together. It
// returns an error when a log can't be read to its end, not for lines that it can't parse: they are in the report.
func Run(ctx context.Context, logs []Log, o Options) (*Report, error) {
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	r := &run{
		options:  o,
		clients:  clients{number: map[string]int32{}, most: o.MaxClients},
		timeline: newTimeline(o.Bucket, len(o.Limits)),
		report:   newReport(o, logs),
	}
	for _, limit := range o.Limits {
		t, err := newTally(limit)
		if err != nil {
			return nil, err
		}
		r.tallies = append(r.tallies, t)
	}
	if err := r.merge(ctx, logs); err != nil {
		return nil, err
	}
	r.conclude()
	return &r.report, nil
}

// merge decides the requests of all logs in the order of time.
func (r *run) merge(ctx context.Context, logs []Log) error {
	streams := make([]*stream, len(logs))
	var heads heap // the next request of each log
	advance := func(log int64) error {
		next, ok, err := streams[log].next()
		if ok {
			next.place = log
			heads.push(next)
		}
		return err
	}
	for i, log := range logs {
		streams[i] = newStream(r, log, &r.report.Logs[i])
		if err := advance(int64(i)); err != nil {
			return err
		}
	}
	for n := 0; len(heads) > 0; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("replay: stopped after %d requests: %w", n, context.Cause(ctx))
		}
		next := heads.pop()
		if err := r.decide(ctx, next); err != nil {
			return err
		}
		if err := advance(next.place); err != nil {
			return err
		}
	}
	return nil
}

// decide gives a request to every limit.
func (r *run) decide(ctx context.Context, next request) error {
	now := at(next.second)
	bucket, err := r.timeline.bucket(next.second)
	if err != nil {
		return err
	}
	bucket.requests++
	r.report.span(next.second)
	for i, t := range r.tallies {
		allowed, err := t.decide(ctx, r.clients.keys[next.client], next.client, r.options.Cost, now)
		if err != nil {
			return fmt.Errorf("replay: limit %s at %v: %w", t.limit, now, err)
		}
		if !allowed {
			bucket.denied[i]++
		}
	}
	return nil
}

// A meter reports what is read through it.
type meter struct {
	io.Reader
	progress func(bytes int)
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	m.progress(n)
	return n, err
}
