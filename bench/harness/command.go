// Package harness has the parts that all benchmarks share: the flags, the rounds, a process for
// each measurement, timings and the tables of results.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Command is one subcommand of bench.
type Command struct {
	Name, Short string
	// Rounds and Time are the defaults of -rounds and -time; -time is in [Least, Most].
	Rounds            int
	Time, Least, Most time.Duration
	// Flags are the flags besides -rounds, -time and -only.
	Flags []string
	// Run measures, and writes tables.
	Run func(ctx context.Context, s Settings, out, progress io.Writer) error
	// Measure carries out one slot, in a process of its own. It is nil if the command has no slots.
	Measure func(ctx context.Context, s Slot) (any, error)
}

// Settings are the flags.
type Settings struct {
	Command                              string
	Rounds                               int
	Time                                 time.Duration
	Only, Workloads, Benchstat, Profiles string
	Wall, SkipMemory                     bool
	Keys, StoreKeys, Fill                int
	Stores                               []string
	Goroutines                           []int
	slot, stores, goroutines             string
}

// Main runs a command with its arguments.
func Main(ctx context.Context, c Command, args []string, out, progress io.Writer) error {
	s, err := c.parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.slot == "" {
		return c.Run(ctx, s, out, progress)
	}
	var slot Slot
	if err := json.Unmarshal([]byte(s.slot), &slot); err != nil {
		return fmt.Errorf("-slot is %q: %w", s.slot, err)
	}
	result, err := c.Measure(ctx, slot)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

func (c Command) parse(args []string, usage io.Writer) (Settings, error) {
	s := Settings{Command: c.Name, Keys: 1, StoreKeys: 1}
	f := flag.NewFlagSet("bench "+c.Name, flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&s.Rounds, "rounds", c.Rounds, "how often each pair is measured, 1 to 100")
	f.DurationVar(&s.Time, "time", c.Time, fmt.Sprintf("how long a measurement takes, %v to %v", c.Least, c.Most))
	f.StringVar(&s.Only, "only", "", "only the contenders whose name has one of these parts, with semicolons (empty: all)")
	if c.Measure != nil {
		f.StringVar(&s.slot, "slot", "", "used by the command itself: what to measure here, as JSON")
	}
	for name, add := range map[string]func(name string){
		"workloads": func(n string) {
			f.StringVar(&s.Workloads, n, "", "only these workloads, by their short names, with commas (empty: all)")
		},
		"benchstat": func(n string) {
			f.StringVar(&s.Benchstat, n, "", "also write every measurement to this file, in the format that benchstat reads")
		},
		"profiles": func(n string) {
			f.StringVar(&s.Profiles, n, "", "also write CPU profiles into this folder, the last round's (empty: none)")
		},
		"skip-memory": func(n string) { f.BoolVar(&s.SkipMemory, n, false, "leave the bytes per key out") },
		"passed": func(n string) {
			f.BoolVar(&s.Wall, n, false, "show the time that passes instead of processor time: on a quiet machine, with waiting for locks")
		},
		"keys": func(n string) {
			f.IntVar(&s.Keys, n, 1_000_000, "how many keys the workload of many keys has on Redis, 1 to 10000000")
		},
		"store-keys": func(n string) { f.IntVar(&s.StoreKeys, n, 10_000, "the same for PostgreSQL and memcached") },
		"stores": func(n string) {
			f.StringVar(&s.stores, n, "redis", "which engines, with commas: redis, postgres, memcached")
		},
		"goroutines": func(n string) {
			f.StringVar(&s.goroutines, n, "1,16,256", "how many goroutines send requests at once, with commas, each 1 to 10000")
		},
		"fill": func(n string) {
			f.IntVar(&s.Fill, n, 1_000_000, "requests for random keys before the first measurement, 0 to 100000000")
		},
	} {
		if slices.Contains(c.Flags, name) {
			add(name)
		}
	}
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("argument %q; accepted: flags only", f.Arg(0))
	}
	if err := s.check(c); err != nil {
		return s, err
	}
	return s.lists()
}

// lists returns the settings with the flags that are lists.
func (s Settings) lists() (Settings, error) {
	if s.stores != "" {
		s.Stores = strings.Split(s.stores, ",")
	}
	for part := range strings.SplitSeq(s.goroutines, ",") {
		n, err := strconv.Atoi(part)
		if s.goroutines != "" && (err != nil || n < 1 || n > 10_000) {
			return s, fmt.Errorf("-goroutines is %q; accepted: numbers from 1 to 10000, with commas", s.goroutines)
		}
		s.Goroutines = append(s.Goroutines, n)
	}
	return s, nil
}

func (s Settings) check(c Command) error {
	if s.Time < c.Least || s.Time > c.Most {
		return fmt.Errorf("-time is %v; accepted: %v to %v", s.Time, c.Least, c.Most)
	}
	for _, f := range []struct {
		name               string
		value, least, most int
	}{
		{"rounds", s.Rounds, 1, 100}, {"keys", s.Keys, 1, 10_000_000}, {"store-keys", s.StoreKeys, 1, 10_000_000}, {"fill", s.Fill, 0, 100_000_000},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("-%s is %d; accepted: %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	return nil
}
