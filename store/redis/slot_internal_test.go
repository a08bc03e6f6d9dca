package redis

import "testing"

// The slots that CLUSTER KEYSLOT tells.
func TestSlot(t *testing.T) {
	for name, want := range map[string]int{
		"123456789": 12739, "": 0, "foo": 12182, "a{foo}b": 12182, "{}foo": slot("{}foo"), "weir:1:{user:42}:login:100/1m": slot("user:42"), "{foo": slot("{foo"),
	} {
		if got := slot(name); got != want {
			t.Errorf("%q is in slot %d, want %d", name, got, want)
		}
	}
}
