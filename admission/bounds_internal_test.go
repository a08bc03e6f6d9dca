package admission

import (
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

// What is kept of limiters that a program makes without end does not grow without end.
func TestWhatIsKeptIsBounded(t *testing.T) {
	var n names
	c := newLocal()
	for i := range time.Duration(1000) {
		l, err := weir.New(weir.Limit{Count: 1, Period: time.Second + i})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.of(l); err != nil {
			t.Fatal(err)
		}
		n.of(l.Limit())
	}
	if kept := len(*n.texts.Load()); kept > mostNames {
		t.Errorf("%d texts are kept, accepted: %d", kept, mostNames)
	}
	if kept := len(c.ready); kept > mostLocal {
		t.Errorf("%d limiters are kept, accepted: %d", kept, mostLocal)
	}
}
