package postgres_test

import (
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// Statements that are prepared go on when the table is altered under them, as it is when it gets a column, is rewritten, or is made anew.
func TestPreparedStatementsOutliveAnAlter(t *testing.T) {
	url, o := postgres.SharedServer(t).URL(), mine(t)
	s := open(t, url+"&pool_max_conns=2", o)
	work := func(what string) {
		t.Helper()
		for _, text := range []string{"1000/1h", "7/1h", "fixed-window 1000/1h", "sliding-log 1000/1h", "1000/month"} {
			b := bind(t, s, text)
			for _, op := range []algorithm.Op{
				{Cost: 1}, {}, {Cost: 1}, {Kind: algorithm.Refund, Cost: 1}, {Kind: algorithm.Refund, Cost: 10}, {Kind: algorithm.TakeUpTo, Cost: 1}, {Kind: algorithm.Reset},
			} {
				if _, err := b.Do(t.Context(), "k", op, store.OwnClock); err != nil {
					t.Errorf("after %s: %s, %+v: %v", what, text, op, err)
				}
			}
		}
	}
	migration, err := postgres.Migration(o)
	if err != nil {
		t.Fatal(err)
	}
	work("nothing")
	for _, sql := range []string{
		`ALTER TABLE ` + o.Table + ` ADD COLUMN note text`,
		`ALTER TABLE ` + o.Table + ` DROP COLUMN note`,
		`ALTER TABLE ` + o.Table + ` SET UNLOGGED`,
		`ALTER TABLE ` + o.Table + ` ALTER COLUMN head TYPE varchar`,
		`ALTER TABLE ` + o.Table + ` ALTER COLUMN head TYPE text`,
		`DROP TABLE ` + o.Table + `; ` + migration,
		`ANALYZE ` + o.Table,
	} {
		run(t, url, sql)
		work(sql)
	}
}
