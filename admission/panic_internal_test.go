package admission

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A frail holding panics when it is renewed and settled.
type frail struct{ renewals atomic.Int64 }

func (f *frail) renew(context.Context) (bool, error) {
	f.renewals.Add(1)
	time.Sleep(time.Second)
	panic("renew")
}
func (f *frail) settle(context.Context, int64) error { panic("settle") }
func (f *frail) giveBack(context.Context) error      { panic("give back") }

// Panics of a renewal, and of a settlement left to it, are logged and do not end the program.
func TestPanicsWhileARequestIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f frail
		var a Admission
		g := &Gate{opts: Options{Log: slog.New(slog.DiscardHandler)}}
		g.hold(httptest.NewRequest(http.MethodGet, "/", nil), &a, &f, 30*time.Second)
		time.Sleep(21*time.Second + 500*time.Millisecond)
		if n := f.renewals.Load(); n != 2 {
			t.Errorf("%d renewals in 21.5 s, want 2", n)
		}
		a.held.giveBack() // a renewal is in progress
		time.Sleep(time.Minute)
		if n := f.renewals.Load(); n != 2 {
			t.Errorf("%d renewals after the settlement, want 2", n)
		}
	})
}
