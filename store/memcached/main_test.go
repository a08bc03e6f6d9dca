package memcached_test

import (
	"os"
	"testing"

	"github.com/weirlimit/weir/store/storetest/engine"
)

func TestMain(m *testing.M) {
	code := m.Run()
	engine.Close()
	os.Exit(code)
}
