package grpclimit

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestWordsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w words
		for i := range 3 * mostWords {
			w.keep(scope{key: strconv.Itoa(i)}, time.Minute)
		}
		if len(w.until) > mostWords {
			t.Errorf("%d words are kept, want at most %d", len(w.until), mostWords)
		}
		time.Sleep(time.Minute)
		w.keep(scope{key: "new"}, time.Minute)
		if len(w.until) != 1 || w.wait(scope{key: "new"}) != time.Minute {
			t.Errorf("%d words are kept, want the one that is not over", len(w.until))
		}
		time.Sleep(time.Minute)
		if wait := w.wait(scope{key: "new"}); wait > 0 || len(w.until) != 0 {
			t.Errorf("the wait is %v, and %d words are kept; want none", wait, len(w.until))
		}
	})
}

func TestAShorterWordIsNoWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w words
		for _, wait := range []time.Duration{time.Second, 5 * time.Second, 2 * time.Second} {
			w.keep(scope{"a", "m"}, wait)
		}
		if got := w.wait(scope{"a", "m"}); got != 5*time.Second {
			t.Errorf("the wait is %v, want the longest, 5 s", got)
		}
		if got := w.wait(scope{"b", "m"}) + w.wait(scope{"a", "n"}); got != 0 {
			t.Errorf("others wait %v, want not to", got)
		}
	})
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		different := map[time.Duration]bool{}
		for _, c := range []struct{ wait, most time.Duration }{{time.Second, 1100 * time.Millisecond}, {time.Minute, 61 * time.Second}, {1, 1}} {
			for range 100 {
				got := jittered(t.Context(), c.wait)
				if different[got] = true; got < c.wait || got > c.most {
					t.Fatalf("%v became %v, want up to %v", c.wait, got, c.most)
				}
			}
		}
		if len(different) < 100 {
			t.Errorf("there were %d different waits, want nearly 200", len(different))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute+100*time.Millisecond)
		defer cancel()
		for range 100 {
			if got := jittered(ctx, time.Minute); got < time.Minute || got > time.Minute+100*time.Millisecond {
				t.Fatalf("a minute became %v, want it to be over before the deadline", got)
			}
		}
	})
}
