package main

import (
	"context"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/weirlimit/weir/policy/clients"
)

// dbCommand looks after the database of clients.
type dbCommand struct {
	Migrate dbMigrate `cmd:"" help:"Make the clients' tables, or bring them up to this version. The service does that itself in SQLite, and never in PostgreSQL."`
}

// BeforeApply refuses arguments that would not be read as they are.
func (c *dbCommand) BeforeApply(k *kong.Context) error { return refuseBytes(k.Args) }

type dbMigrate struct {
	databaseFlag

	Print bool `help:"Print the SQL for a new database of the URL's kind, and touch none."`
}

// Run takes the steps that are missing, or prints them all.
func (c *dbMigrate) Run(ctx context.Context, p *program) error {
	if c.Print {
		sql, err := clients.Script(c.Database)
		if err == nil {
			_, err = fmt.Fprint(p.stdout, sql)
		}
		return err
	}
	steps, err := clients.Migrate(ctx, c.Database)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if _, err := fmt.Fprintf(p.stdout, "migration %d (%s)\n", s.Number, s.Name); err != nil {
			return err
		}
	}
	if len(steps) == 0 {
		_, err = fmt.Fprintln(p.stdout, "nothing to do")
	}
	return err
}
