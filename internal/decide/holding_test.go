package decide

import (
	"strings"
	"testing"
)

// A panic in a store reaches the caller, where a recover catches it: in a separate goroutine it
// would end the process.
func TestPanicsReachTheCaller(t *testing.T) {
	defer func() {
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), "broken store") || !strings.Contains(err.Error(), "holding_test.go") {
			t.Errorf("recovered %v; want the panic with its stack", err)
		}
	}()
	each(3, func(i int) {
		if i == 1 {
			panic("broken store")
		}
	})
}
