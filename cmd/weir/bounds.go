package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir/internal/bounds"
)

// boundsCommand prints what each algorithm admits at worst, as the Markdown table of docs/algorithms.md.
type boundsCommand struct{}

// Help implements kong.HelpProvider.
func (*boundsCommand) Help() string {
	return "Searches every pattern of requests on small cases (3 units per window of 6 and of 12 ticks), measures" +
		" when clients of 1.1, 2 and 10 times a limit of 100 are first denied, and prints the table of" +
		" docs/algorithms.md. It fails if an algorithm admits other than what its formula says."
}

// Run prints the table to the program's standard output.
func (c *boundsCommand) Run(ctx *kong.Context) error { return c.write(ctx.Stdout) }

func (*boundsCommand) write(w io.Writer) error {
	rows, err := bounds.Rows()
	if err != nil {
		return fmt.Errorf("weir bounds: %w", err)
	}
	return bounds.Write(w, rows)
}
