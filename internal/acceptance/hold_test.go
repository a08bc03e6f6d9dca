package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// at returns a limiter whose clock is the time behind the pointer.
func at(t *testing.T, text string, now *time.Time, opts ...weir.Option) *weir.Limiter {
	t.Helper()
	l, err := weir.New(weir.MustParseLimit(text), append(opts, weir.WithClock(func() time.Time { return *now }))...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func left(t *testing.T, l *weir.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(background, "k")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func TestHoldIsSettledAtWhatItCost(t *testing.T) {
	for cost, want := range map[int64]int64{0: 100, 10: 90, 30: 70, 45: 55, 100: 0, 130: 0} {
		now := time.Unix(1_790_000_000, 0)
		l := at(t, "fixed-window 100/1h", &now, weir.WithName("tokens"))
		h, err := l.Hold(background, "k", 30, time.Minute)
		if err != nil || !h.Allowed || h.Remaining != 70 {
			t.Fatalf("%+v, %v", h, err)
		}
		d, err := h.Commit(background, cost)
		if err != nil || !d.Allowed || d.Remaining != want || left(t, l) != want {
			t.Errorf("settled at %d: %+v, %v; want %d left", cost, d, err, want)
		}
		if err := h.Cancel(background); err != nil || left(t, l) != want {
			t.Errorf("cancelled after that: %v, %d left", err, left(t, l))
		}
		if d, err := h.Commit(background, cost); err != nil || d.Allowed || d.RetryAfter != weir.Never || d.Remaining != want {
			t.Errorf("settled twice: %+v, %v", d, err)
		}
		now = now.Add(time.Hour) // what is owed is of the next hour
		if want := 100 - max(0, cost-100); left(t, l) != want {
			t.Errorf("an hour after %d: %d left, want %d", cost, left(t, l), want)
		}
	}
}

func TestHoldIsGivenBackWhenItsLifeIsOver(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "fixed-window 100/1h", &now, weir.WithName("tokens"))
	h, err := l.Hold(background, "k", 30, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute - 1)
	if left(t, l) != 70 {
		t.Errorf("%d left before", left(t, l))
	}
	now = now.Add(1)
	if left(t, l) != 100 {
		t.Errorf("%d left after", left(t, l))
	}
	if d, err := h.Commit(background, 120); err != nil || !d.Allowed || d.Remaining != 0 {
		t.Errorf("settled after: %+v, %v", d, err)
	}
	if d, err := h.Commit(background, 120); err != nil || d.Allowed {
		t.Errorf("settled again: %+v, %v", d, err)
	}
	if now = now.Add(time.Hour); left(t, l) != 80 { // 20 became debt
		t.Errorf("%d left an hour later", left(t, l))
	}
}

// A renewed hold lasts; an expired hold is taken again, or charged when it is settled.
func TestHoldIsRenewed(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "fixed-window 100/24h", &now, weir.WithName("tokens"))
	h, err := l.Hold(background, "k", 30, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		now = now.Add(50 * time.Second)
		if d, err := h.Renew(background); err != nil || !d.Allowed || d.Remaining != 70 {
			t.Fatalf("renewed: %+v, %v", d, err)
		}
	}
	now = now.Add(2 * time.Minute)
	if d, err := h.Renew(background); err != nil || !d.Allowed || d.Remaining != 70 {
		t.Errorf("renewed after it has expired: %+v, %v", d, err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := l.Take(background, "k", 90); err != nil {
		t.Fatal(err)
	}
	if d, err := h.Renew(background); err != nil || d.Allowed || d.Remaining != 10 {
		t.Errorf("renewed without room: %+v, %v", d, err)
	}
	if d, err := h.Commit(background, 25); err != nil || !d.Allowed || d.Remaining != 0 {
		t.Errorf("settled: %+v, %v", d, err)
	}
	if _, err := h.Renew(background); err == nil {
		t.Error("renewed after it was settled")
	}
	now = now.Add(24 * time.Hour)
	if left(t, l) != 85 {
		t.Errorf("%d left a day later, want 85: 15 became debt", left(t, l))
	}
}

// A Commit with a lost reply is retried without a second charge, also for an expired hold.
func TestHoldIsChargedOnceWhenAReplyIsLost(t *testing.T) {
	for _, expired := range []bool{false, true} {
		now := time.Unix(1_790_000_000, 0)
		s := &lossy{Store: memory.New(memory.Options{})}
		l := at(t, "fixed-window 100/24h", &now, weir.WithName("tokens"), weir.WithStore(s))
		h, err := l.Hold(background, "k", 30, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if expired {
			now = now.Add(2 * time.Minute)
		}
		s.lose = true
		if _, err := h.Commit(background, 20); !errors.Is(err, errLost) {
			t.Fatalf("the error is %v", err)
		}
		s.lose = false
		if _, err := h.Renew(background); err == nil {
			t.Error("renewed although it may be settled")
		}
		if _, err := h.Commit(background, 20); err != nil {
			t.Error(err)
		}
		if left(t, l) != 80 {
			t.Errorf("expired %v: %d left, want 80", expired, left(t, l))
		}
	}
}

var errLost = errors.New("the reply was lost")

// A lossy store carries out operations, and then loses the replies while lose is set.
type lossy struct {
	store.Store

	lose bool
}

func (s *lossy) Bind(spec store.Spec) (store.Binding, error) {
	b, err := s.Store.Bind(spec)
	return &lossyBinding{b, s}, err
}

type lossyBinding struct {
	store.Binding

	store *lossy
}

func (b *lossyBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, err := b.Binding.Do(ctx, key, op, now)
	if b.store.lose {
		return v, errLost
	}
	return v, err
}

func TestHoldIsCancelled(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "fixed-window 100/1h", &now, weir.WithName("tokens"))
	h, err := l.Hold(background, "k", 30, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(background)
	cancel()
	for range 2 {
		if err := h.Cancel(ended); err != nil || left(t, l) != 100 {
			t.Errorf("%v, %d left", err, left(t, l))
		}
	}
	if _, err := l.Hold(ended, "k", 30, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("held when the context had ended: %v", err)
	}
}

func TestHoldIsDenied(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "fixed-window 100/1h", &now, weir.WithName("tokens"))
	takeAt(t, l, 80, now)
	h, err := l.Hold(background, "k", 30, time.Minute)
	if err != nil || h.Allowed || h.RetryAfter <= 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	if err := h.Cancel(background); err != nil || left(t, l) != 20 {
		t.Errorf("%v, %d left", err, left(t, l))
	}
	if d, err := h.Commit(background, 5); err != nil || d.Allowed || left(t, l) != 20 {
		t.Errorf("settled: %+v, %v", d, err)
	}
}

func TestHoldRefusesWhatItCantKeep(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	if _, err := at(t, "100/1h", &now).Hold(background, "k", 1, time.Minute); !errors.Is(err, weir.ErrUnnamed) {
		t.Errorf("without a name: %v", err)
	}
	l := at(t, "100/1h", &now, weir.WithName("n"))
	var life *weir.LifeError
	if _, err := l.Hold(background, "k", 1, 999); !errors.As(err, &life) || life.Life != 999 {
		t.Errorf("a life of 999ns: %v", err)
	}
	var cost *weir.CostError
	if _, err := l.Hold(background, "k", -1, time.Minute); !errors.As(err, &cost) {
		t.Errorf("a negative estimate: %v", err)
	}
	h, err := l.Hold(background, "k", 1, 1<<63-1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Commit(background, -1); !errors.As(err, &cost) {
		t.Errorf("a negative cost: %v", err)
	}
	if d, err := h.Commit(background, 1); err != nil || !d.Allowed {
		t.Errorf("after that: %+v, %v", d, err)
	}
}

// S18: limiters of one name are one budget, whatever their limits: 10 more once, and nothing more.
func TestPitfallS18LimitersOfOneName(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	one := weir.WithStore(memory.New(memory.Options{}))
	limiters := []*weir.Limiter{at(t, "10/1h", &now, weir.WithName("plan"), one), at(t, "20/1h", &now, weir.WithName("plan"), one)}
	took := int64(0)
	for i := range 7 {
		n, _, err := limiters[i%2].TakeUpTo(background, "k", 100)
		if err != nil {
			t.Fatal(err)
		}
		took += n
	}
	if took != 20 {
		t.Errorf("took %d, want 20", took)
	}
}

func TestRenewKeepsALease(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "concurrent 1 lease=10s", &now)
	r, err := l.Reserve(background, "k", 1)
	if err != nil || !r.Allowed {
		t.Fatal(r, err)
	}
	for range 3 {
		now = now.Add(8 * time.Second)
		if d, err := r.Renew(background); err != nil || !d.Allowed || d.ResetAfter != 10*time.Second {
			t.Fatalf("%+v, %v", d, err)
		}
		if d := takeAt(t, l, 1, now); d.Allowed {
			t.Fatalf("another one: %+v", d)
		}
	}
	now = now.Add(9 * time.Second) // longer than a lease after it was made
	if err := r.Cancel(background); err != nil || left(t, l) != 1 {
		t.Errorf("cancelled: %v, %d left", err, left(t, l))
	}
	if _, err := r.Renew(background); err == nil {
		t.Error("renewed what was cancelled")
	}
}

func TestRenewComesTooLate(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	l := at(t, "concurrent 1 lease=10s", &now)
	r, err := l.Reserve(background, "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(10 * time.Second)
	takeAt(t, l, 1, now)
	if d, err := r.Renew(background); err != nil || d.Allowed || d.RetryAfter != 10*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
	if err := r.Cancel(background); err != nil || left(t, l) != 0 {
		t.Errorf("cancelled: %v, %d left: the lease of somebody else was released", err, left(t, l))
	}
	bucket, err := at(t, "10/1s", &now).Reserve(background, "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Renew(background); err == nil {
		t.Error("a bucket has a lease")
	}
}
