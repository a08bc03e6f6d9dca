package postgres

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A table is a name as SQL has it, in quotes.
type table string

var tableName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$`)

func parseTable(name string) (table, error) {
	if !tableName.MatchString(name) {
		return "", fmt.Errorf("postgres: table is %.150q; accepted: name or schema.name, each of up to 63 letters, digits and _, not beginning with a digit", name)
	}
	return table(pgx.Identifier(strings.Split(name, ".")).Sanitize()), nil
}

// Migration returns the statements that make the table, for a user with the rights. They may be run
// again. The error is that of invalid Options.
//
// The key is compared byte by byte. No other column has an index, and pages have room to spare: an update then stays
// in its page, and touches no index (a heap-only tuple). The last statement is for a table of an older weir: it adds a column without
// writing the rows anew.
func Migration(o Options) (string, error) {
	t, err := o.withDefaults().check()
	if err != nil {
		return "", err
	}
	return t.migration(o.Unlogged), nil
}

func (t table) migration(unlogged bool) string {
	kind := "TABLE"
	if unlogged {
		kind = "UNLOGGED TABLE"
	}
	return fmt.Sprintf(`CREATE %s IF NOT EXISTS %s (
    name    text COLLATE "C" PRIMARY KEY,
    words   bigint[] NOT NULL,
    expires timestamptz NOT NULL,
    head    text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE %[2]s ADD COLUMN IF NOT EXISTS head text COLLATE "C" NOT NULL DEFAULT '';
`, kind, t)
}

// in puts the table's name into a statement, in which it is TABLE.
func (t table) in(statement string) string { return strings.ReplaceAll(statement, "TABLE", string(t)) }
