package postgres

import (
	"testing"

	start "github.com/weirlimit/weir/store/storetest/engine"
)

// SharedServer is one server for the tests that leave it running.
var SharedServer = start.Shared(func(t testing.TB) *start.Server { return start.Postgres(t) })
