package policy

import (
	"strings"
	"testing"
)

// A panic in a store reaches the caller, where a recover catches it: in a separate goroutine it
// would end the process.
func TestTogetherPanicsInTheCaller(t *testing.T) {
	defer func() {
		err, ok := recover().(error)
		if !ok || !strings.Contains(err.Error(), "broken store") || !strings.Contains(err.Error(), "settle_internal_test.go") {
			t.Errorf("recovered %v; want the panic with its stack", err)
		}
	}()
	together(3, func(i int) {
		if i == 1 {
			panic("broken store")
		}
	})
}

func TestClientCheckWithoutPolicies(t *testing.T) {
	for _, s := range []*Set{nil, {}} {
		if err := s.ClientCheck()("client_ip=192.0.2.7", &Grant{Plan: "pro"}); err == nil {
			t.Error("a Set without policies accepts a client")
		}
	}
}
