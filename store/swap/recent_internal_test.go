package swap

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A name is remembered for a while, or until it is removed, and the table never grows.
func TestRecent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const memory = 3 * time.Second
		r := newRecent(memory)
		check := func(what string, want bool) {
			t.Helper()
			if got := r.has("a"); got != want {
				t.Errorf("%s: it is remembered: %t", what, got)
			}
		}
		check("at first", false)
		r.add("a")
		check("added", true)
		time.Sleep(memory - time.Nanosecond)
		check("just before it is forgotten", true)
		time.Sleep(time.Nanosecond)
		check("forgotten", false)
		r.add("a")
		check("added again", true)
		r.remove("a")
		check("removed", false)
		r.add("a")
		r.remove("b")
		check("another removed", true)
	})
}

// Whatever many do at once, a name that nobody added is not remembered.
func TestRecentAtOnce(t *testing.T) {
	r := newRecent(0)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 4 * mostRecent {
				name := fmt.Sprint(g, " ", i)
				r.add(name)
				if r.has("no " + name) {
					t.Errorf("%q is remembered", "no "+name)
				}
				if i%3 == 0 {
					r.remove(name)
				}
			}
		})
	}
	wg.Wait()
}
