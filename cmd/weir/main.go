// Command weir serves decisions, and helps to choose limits. See weir --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(ctx, os.Args[1:]))
}
