// Command bench measures weir beside its peers. See README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/weirlimit/weir/bench/engines"
	"github.com/weirlimit/weir/bench/harness"
	"github.com/weirlimit/weir/bench/inprocess"
	"github.com/weirlimit/weir/bench/middleware"
	"github.com/weirlimit/weir/bench/servers"
)

var commands = []harness.Command{inprocess.Command, middleware.Command, servers.Command, engines.Command}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	i := slices.IndexFunc(commands, func(c harness.Command) bool { return c.Name == name })
	if i >= 0 {
		return harness.Main(ctx, commands[i], args[1:], out, progress)
	}
	for _, c := range commands {
		fmt.Fprintf(progress, "go run . %-12s%s\n", c.Name, c.Short)
	}
	if name == "-h" || name == "--help" || name == "help" {
		return nil
	}
	return fmt.Errorf("command is %q; accepted: the above, each with -h for its flags", name)
}
