package postgres

import (
	"strings"
	"testing"

	start "github.com/weirlimit/weir/store/storetest/engine"
)

// SharedServer is one server for the tests that leave it running.
var SharedServer = start.Shared(func(t testing.TB) *start.Server { return start.Postgres(t) })

// tableOf is a table of the test's own.
func tableOf(t testing.TB) string { return strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()) }
