// Command servers measures weir's daemon beside Redis and beside a server that does nothing, over loopback, with
// redis-benchmark. All servers are up during the whole run, on one processor; the load has the other. The
// pairs of target and pipeline take turns, round by round. See ../README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

type settings struct {
	rounds int
	time   time.Duration
	fill   int
	only   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

func parse(args []string, usage io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("servers", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&s.rounds, "rounds", 5, "how often each pair is measured, 1 to 100")
	f.DurationVar(&s.time, "time", 2*time.Second, "about how long a measurement takes, 10ms to 1m; processor time is counted in steps of 10ms")
	f.IntVar(&s.fill, "fill", 1_000_000, "requests for random keys before the first measurement, 0 to 100000000")
	f.StringVar(&s.only, "only", "", "only the targets whose name has one of these parts, with commas (empty: all)")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("argument %q; accepted: flags only", f.Arg(0))
	case s.rounds < 1 || s.rounds > 100:
		return s, fmt.Errorf("-rounds is %d; accepted: 1 to 100", s.rounds)
	case s.time < 10*time.Millisecond || s.time > time.Minute:
		return s, fmt.Errorf("-time is %v; accepted: 10ms to 1m", s.time)
	case s.fill < 0 || s.fill > 100_000_000:
		return s, fmt.Errorf("-fill is %d; accepted: 0 to 100000000", s.fill)
	}
	return s, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	s, err := parse(args, progress)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var chosen []target
	for _, t := range targets(dir) {
		for part := range strings.SplitSeq(s.only, ",") {
			if strings.Contains(t.name, part) {
				chosen = append(chosen, t)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("-only is %q, which selects none; accepted: parts of %s", s.only, names(targets(dir)))
	}
	if err := build(dir, chosen); err != nil {
		return err
	}
	m := &measurement{settings: s, targets: chosen, progress: progress}
	defer m.stop()
	if err := m.take(ctx); err != nil {
		return err
	}
	return m.print(out)
}

func names(all []target) string {
	var n []string
	for _, t := range all {
		n = append(n, t.name)
	}
	return strings.Join(n, ", ")
}
