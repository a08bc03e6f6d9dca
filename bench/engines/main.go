// Command engines measures weir over shared engines: over Redis beside two other Go limiters, and over PostgreSQL and
// memcached. Engines have one processor, the load the others; every measurement has a process of its own, and contenders
// take turns, round by round. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settings are the command's flags.
type settings struct {
	rounds     int
	duration   time.Duration
	keys       int
	storeKeys  int
	stores     []string
	only       string
	goroutines []int
	profiles   string
	slot       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	if s.slot != "" {
		return runSlot(ctx, s.slot, out)
	}
	p, err := makePlan(s, progress)
	if err != nil {
		return err
	}
	defer p.stop()
	if err := p.measure(ctx); err != nil {
		return err
	}
	return p.print(out)
}

func parse(args []string, usage io.Writer) (settings, error) {
	var s settings
	var stores, goroutines string
	f := flag.NewFlagSet("engines", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&s.rounds, "rounds", 5, "how often each pair is measured, 1 to 100")
	f.DurationVar(&s.duration, "duration", 2*time.Second, "how long a measurement takes, 10ms to 1m")
	f.IntVar(&s.keys, "keys", 1_000_000, "how many keys the workload of many keys has on Redis, 1 to 10000000")
	f.IntVar(&s.storeKeys, "store-keys", 10_000, "the same for PostgreSQL and memcached")
	f.StringVar(&stores, "stores", "redis", "which engines, with commas: redis, postgres, memcached")
	f.StringVar(&s.only, "only", "", "only the contenders whose name has one of these parts, with semicolons (empty: all)")
	f.StringVar(&goroutines, "goroutines", "1,16,256", "how many goroutines ask at once, with commas, each 1 to 10000")
	f.StringVar(&s.profiles, "profiles", "", "also write CPU profiles of the load into this folder, the last round's (empty: none)")
	f.StringVar(&s.slot, "slot", "", "used by the command itself: what to measure here, as JSON")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("argument %q; accepted: flags only", f.Arg(0))
	}
	s.stores = strings.Split(stores, ",")
	for part := range strings.SplitSeq(goroutines, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > 10_000 {
			return s, fmt.Errorf("-goroutines is %q; accepted: numbers from 1 to 10000, with commas", goroutines)
		}
		s.goroutines = append(s.goroutines, n)
	}
	return s, s.check()
}

// mostKeys bounds the keys that are kept for each contender.
const mostKeys = 10_000_000

func (s settings) check() error {
	for _, name := range s.stores {
		if !slices.Contains([]string{redisEngine, postgresEngine, memcachedEngine}, name) {
			return fmt.Errorf("-stores has %q; accepted: %s, %s, %s", name, redisEngine, postgresEngine, memcachedEngine)
		}
	}
	switch {
	case s.rounds < 1 || s.rounds > 100:
		return fmt.Errorf("-rounds is %d; accepted: 1 to 100", s.rounds)
	case s.duration < 10*time.Millisecond || s.duration > time.Minute:
		return fmt.Errorf("-duration is %v; accepted: 10ms to 1m", s.duration)
	case s.keys < 1 || s.keys > mostKeys:
		return fmt.Errorf("-keys is %d; accepted: 1 to %d", s.keys, mostKeys)
	case s.storeKeys < 1 || s.storeKeys > mostKeys:
		return fmt.Errorf("-store-keys is %d; accepted: 1 to %d", s.storeKeys, mostKeys)
	}
	return nil
}
