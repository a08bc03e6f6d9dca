package weir_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir"
)

func TestPeriodWithoutUnitIsRefused(t *testing.T) {
	slip := weir.Limit{Count: 100, Period: 60}
	var refused *weir.LimitError
	if _, err := weir.New(slip); !errors.As(err, &refused) || refused.Field != "period" || refused.Value != "60ns" {
		t.Errorf("New: %v", err)
	}
	l, err := weir.New(weir.MustParseLimit("100/1m"), weir.WithName("login"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetLimit(slip); !errors.As(err, &refused) || l.Limit().Period != time.Minute {
		t.Errorf("SetLimit: %v, and the limit is %v", err, l.Limit())
	}
	for _, text := range []string{"sliding-window 3/12ns", "sliding-buckets 8/40ns cells=4", "concurrent 5 lease=30ns"} {
		if _, err := weir.New(weir.MustParseLimit(text)); err != nil {
			t.Errorf("New of %s: %v", text, err)
		}
	}
}
