// Command weir serves decisions, and helps to choose limits. See weir --help.
package main

import (
	"context"
	"os"
	_ "time/tzdata" // calendar limits name time zones, and not every machine has them
)

func main() {
	p := program{stdout: os.Stdout, stderr: os.Stderr}
	os.Exit(p.run(context.Background(), os.Args[1:]))
}
