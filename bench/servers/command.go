// Package servers measures weir's daemon beside Redis and beside a server that does nothing, over
// loopback, with redis-benchmark. All servers are up during the whole run, on one processor; the
// load has the other. See ../README.md.
package servers

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/weirlimit/weir/bench/harness"
)

// Command is the subcommand. Processor time is counted in steps of 10 ms, which bounds -time.
var Command = harness.Command{
	Name: "servers", Short: "the daemon beside Redis; about 6 minutes; needs redis-server, redis-benchmark, taskset",
	Rounds: 5, Time: 2 * time.Second, Least: 10 * time.Millisecond, Most: time.Minute,
	Flags: []string{"fill"}, Run: run,
}

// Servers run on one processor, the load on another.
const serverCore, loadCore = "0", "1"

func run(ctx context.Context, s harness.Settings, out, progress io.Writer) error {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen, err := harness.Contenders(s, targets(dir))
	if err != nil {
		return err
	}
	if err := build(dir, chosen); err != nil {
		return err
	}
	m := &measurement{Settings: s, targets: chosen, progress: progress}
	defer m.stop()
	if err := m.take(ctx); err != nil {
		return err
	}
	return m.print(out)
}
