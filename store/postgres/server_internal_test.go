package postgres

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	start "github.com/weirlimit/weir/internal/testengine"
)

// SharedServer is one server for the tests that leave it running.
var SharedServer = start.Shared(func(t testing.TB) *start.Server { return start.Postgres(t) })

// tablesOf counts the tables of tests.
var tablesOf atomic.Int64

// tableOf is a table that no test had before, also where one is run again.
func tableOf(t testing.TB) string {
	return fmt.Sprint(strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()), "_", tablesOf.Add(1))
}
