package pacing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/httplimit/header"
)

func deny(wait time.Duration) Response {
	return Response{Denied, header.Report{Retry: true, RetryAfter: wait}}
}

// Pauses are longer by up to a tenth by chance, by no more than ten seconds, and never longer than they may be.
func TestPausesEndByChance(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct{ asked, longest, first, last time.Duration }{
		{10 * time.Second, time.Hour, 10 * time.Second, 11 * time.Second},
		{100 * time.Second, time.Hour, 100 * time.Second, 110 * time.Second},
		{100 * time.Hour, 200 * time.Hour, 100 * time.Hour, 100*time.Hour + 10*time.Second},
		{time.Hour - time.Second, time.Hour, time.Hour - time.Second, time.Hour},
		{time.Hour, time.Hour, time.Hour, time.Hour},
		{time.Hour + 1, time.Hour, time.Hour - 10*time.Second, time.Hour},
		{1 << 62, time.Hour, time.Hour - 10*time.Second, time.Hour},
	} {
		v := &server{longest: c.longest}
		first, last := c.last, c.first
		for range 300 {
			p := newPause(c.asked, now)
			end := v.end(p).Sub(now)
			if first, last = min(first, end), max(last, end); end < c.first || end > c.last || v.due(p).After(v.end(p)) {
				t.Fatalf("%v is %v, want %v to %v; it is due after %v", c.asked, end, c.first, c.last, v.due(p).Sub(now))
			}
		}
		if last-first < (c.last-c.first)/2 {
			t.Errorf("%v is never less than %v, nor more than %v", c.asked, first, last)
		}
	}
}

// What is added to a pause by chance counts neither for the longest wait nor for the deadline: who can wait for what the server says goes, before either is over.
func TestChanceIsNotCounted(t *testing.T) {
	for _, c := range []struct {
		said           Response
		most, deadline time.Duration
		last           time.Duration // when it goes, at the latest; 0: it can't wait
		late           bool          // because of its deadline
	}{
		{deny(time.Minute), time.Minute, 0, time.Minute, false},
		{deny(time.Minute), 61 * time.Second, 0, 61 * time.Second, false},
		{deny(time.Minute), time.Minute, 62 * time.Second, 61 * time.Second, false},
		{deny(time.Minute), time.Hour, 62 * time.Second, 61 * time.Second, false},
		{tell(header.State{Name: "a", Within: time.Minute}), time.Minute, 0, time.Minute, false},
		{tell(header.State{Name: "a", Within: time.Minute}), time.Hour, 61 * time.Second, 60500 * time.Millisecond, false},
		{deny(time.Minute), time.Minute - 1, 0, 0, false},
		{deny(time.Minute), time.Hour, time.Minute - 1, 0, true},
	} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				var s Servers
				var first, second Ticket
				if err := s.Enter(t.Context(), "s", c.most, &first); err != nil {
					t.Fatal(err)
				}
				if until := s.Answered(&first, c.said); time.Until(until) != time.Minute {
					t.Errorf("nothing may be sent for %v, want a minute", time.Until(until))
				}
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				err := s.Enter(ctx, "s", c.most, &second)
				took := time.Since(start)
				if c.last > 0 && (err != nil || took < time.Minute || took > c.last) {
					t.Errorf("%+v: %v after %v", c, err, took)
				}
				var wait *WaitError
				if c.last == 0 && (!errors.As(err, &wait) || took != 0 || wait.Deadline != c.late || wait.Wait != time.Minute) {
					t.Errorf("%+v: %#v after %v", c, err, took)
				}
			})
		}
	}
}

// A pause that comes while a request waits is counted with what it has waited.
func TestPausesAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Servers
		var first, second, third Ticket
		for _, k := range []*Ticket{&first, &second} {
			if err := s.Enter(t.Context(), "s", time.Minute, k); err != nil {
				t.Fatal(err)
			}
		}
		s.Answered(&first, deny(50*time.Second))
		time.AfterFunc(40*time.Second, func() { s.Answered(&second, deny(30*time.Second)) })
		start := time.Now()
		err := s.Enter(t.Context(), "s", time.Minute, &third)
		var wait *WaitError
		if took := time.Since(start); !errors.As(err, &wait) || wait.Wait != 30*time.Second || wait.Most != 20*time.Second || took != 40*time.Second {
			t.Errorf("%#v after %v, want the error after 40 s", err, took)
		}
	})
}
