package main

import (
	"fmt"

	"github.com/weirlimit/weir/store/postgres"
)

// migrationCommand prints what a store in PostgreSQL does on first use, if it may.
type migrationCommand struct {
	Table    string `default:"${table}" placeholder:"NAME" help:"The table: name or schema.name, as weir_table in the store's URL. Default: ${default}."`
	Unlogged bool   `help:"Make it without a write-ahead log: faster, and empty after a crash of PostgreSQL."`
}

// Run prints the statements.
func (c *migrationCommand) Run(p *program) error {
	sql, err := postgres.Migration(postgres.Options{Table: c.Table, Unlogged: c.Unlogged})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(p.stdout, sql)
	return err
}
