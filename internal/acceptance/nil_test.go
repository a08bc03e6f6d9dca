package acceptance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
)

// Methods of nil values return errors that name the missing value.
func TestNilValuesReturnErrors(t *testing.T) {
	ctx := t.Context()
	var h *weir.Hold
	var r *weir.Reservation
	var l *weir.Lease
	for name, f := range map[string]func() error{
		"Hold.Renew":         func() error { _, err := h.Renew(ctx); return err },
		"Hold.Commit":        func() error { _, err := h.Commit(ctx, 1); return err },
		"Hold.Cancel":        func() error { return h.Cancel(ctx) },
		"Reservation.Renew":  func() error { _, err := r.Renew(ctx); return err },
		"Reservation.Cancel": func() error { return r.Cancel(ctx) },
		"Lease.Release":      func() error { return l.Release(ctx) },
		"Lease.Context":      func() error { return context.Cause(l.Context(ctx)) },
		"option":             func() error { _, err := weir.New(weir.MustParseLimit("1/1s"), nil); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), " nil; accepted: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if r.Lease() != 0 {
		t.Error("a nil Reservation has a lease")
	}
}
