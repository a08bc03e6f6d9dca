package policy

import "testing"

// Other clients are a reason to try a rejected file again: its plans may be those of the clients.
func TestOtherClientsAreAReasonToTryAgain(t *testing.T) {
	c, err := Parse([]byte("policies: [{name: a, key: all, limits: [1/1s]}]"), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(c, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := s.file("weir.yaml")
	before := f.Changes()
	if err := s.UseClients(nil); err != nil {
		t.Fatal(err)
	}
	if f.Changes() == before {
		t.Error("other clients are no change")
	}
}
