package policy

import "testing"

func TestClientCheckWithoutPolicies(t *testing.T) {
	for _, s := range []*Set{nil, {}} {
		if err := s.ClientCheck()("client_ip=192.0.2.7", &Grant{Plan: "pro"}); err == nil {
			t.Error("a Set without policies accepts a client")
		}
	}
}
