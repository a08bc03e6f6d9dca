package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weirlimit/weir/policy"
	"github.com/weirlimit/weir/policy/clients"
)

// policyCommand looks at files of policies.
type policyCommand struct {
	Check   policyCheck   `cmd:"" help:"Report errors and warnings in files of policies, as file:line:column: message. The exit code is 1 if a file has errors."`
	Explain policyExplain `cmd:"" help:"Say which policies match a request and why, the keys and limits, and what stands for them. Changes nothing."`
}

type policyCheck struct {
	Files   []string `arg:"" optional:"" name:"file" help:"Files of policies."`
	Clients string   `placeholder:"URL" help:"Check too that the policies have the plans of this database of clients, and keep their limits: ${clients}."`
	Strict  bool     `help:"The exit code is 1 if there are warnings, too. Notes do not count."`
	Schema  bool     `help:"Print the JSON Schema of such files instead, for editors."`
}

// Validate implements kong's hook.
func (c *policyCheck) Validate() error {
	if c.Schema == (len(c.Files) > 0) {
		return errors.New("it is given " + map[bool]string{true: "files and --schema", false: "no file"}[c.Schema] + "; accepted: files, or --schema")
	}
	return nil
}

// errShown is the error of what has said itself what is wrong.
var errShown = errors.New("shown")

// Run checks each file, also after a file with errors.
func (c *policyCheck) Run(ctx context.Context, p *program) (err error) {
	if c.Schema {
		_, err = fmt.Fprintf(p.stdout, "%s", policy.Schema())
		return err
	}
	for _, name := range c.Files {
		set, wrong := c.check(ctx, name)
		if wrong != nil {
			_, _ = fmt.Fprintln(p.stderr, wrong)
			err = errShown
			continue
		}
		warnings := 0
		for _, w := range set.Warnings() {
			_, _ = fmt.Fprintln(p.stderr, w.String())
			if !w.Note {
				warnings++
			}
		}
		found := "nothing wrong"
		if warnings > 0 {
			found = plural(warnings, "warning", "warnings")
			if c.Strict {
				err = errShown
			}
		}
		_, _ = fmt.Fprintf(p.stdout, "%s: %s, %s\n", name, plural(set.Status().Policies, "policy", "policies"), found)
	}
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// check loads a file, and checks the policies against the clients if there are any.
func (c *policyCheck) check(ctx context.Context, name string) (*policy.Set, error) {
	set, err := policy.Load(ctx, name, policy.Options{})
	if err == nil && c.Clients != "" {
		var bad []*clients.RowError
		if bad, err = loadClients(ctx, set, c.Clients); err == nil && len(bad) > 0 {
			err = fmt.Errorf("%s: clients that make no sense: %d, the first: %w; weir clients check --config %s shows all", name, len(bad), bad[0], name)
		}
	}
	return set, err
}

// loadClients gives a set the clients of a database, which is not followed, and returns the bad
// rows, which the set does not use.
func loadClients(ctx context.Context, set *policy.Set, databaseURL string) ([]*clients.RowError, error) {
	d, err := clients.OpenExisting(ctx, databaseURL) // where there is none, none is to be made
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	f, err := clients.Follow(ctx, databaseURL, clients.Options{Policies: set, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	return f.Table().BadRows(), f.Close()
}
