package storetest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// askers ask while the engine restarts.
const askers = 8

// survivesRestart restarts the engine under traffic. The store must be used on as it is.
func survivesRestart(k *check) {
	if k.harness.Restart == nil {
		k.Skip("there is no engine to restart (Harness.Restart is nil)")
	}
	s := k.asking()
	busy, full := k.mustBind(s, "1000000/87600h"), k.mustBind(s, "fixed-window 25/720h")
	full.take("key", 25, store.OwnClock)
	granted, failed := busy.traffic(func() { k.harness.Restart(k.TB) })
	k.eventually("the store works again", func() bool {
		_, err := busy.ask(context.Background(), "key", algorithm.Op{}, store.OwnClock)
		return err == nil
	})
	k.Logf("while the engine restarted %d requests passed, and %d failed", granted, failed)
	used := busy.limit.Capacity() - busy.peek("key", store.OwnClock).Remaining
	if used > granted+failed || k.harness.Persistent && used < granted {
		k.Fatalf("%v: %d requests were granted and %d failed while the engine restarted, and %d are used", busy.limit, granted, failed, used)
	}
	v := full.take("key", 1, store.OwnClock)
	if k.harness.Persistent && v.Granted >= 0 {
		k.Fatalf("%v: the key was used up before the engine restarted, and is granted %s after", full.limit, show(v))
	}
	for range 5 { // it is not one connection that works again
		full.take("another key", 1, store.OwnClock)
	}
}

// traffic takes one unit after the other while f runs, and some time more.
func (b *bound) traffic(f func()) (granted, failed int64) {
	b.Helper()
	var passed, errs atomic.Int64
	var wrong atomic.Pointer[algorithm.Verdict]
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range askers {
		wg.Go(func() {
			for over := false; !over; {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				v, err := b.ask(ctx, "key", algorithm.Op{Cost: 1}, store.OwnClock)
				cancel()
				switch {
				case err != nil:
					errs.Add(1)
				case v.Granted == 1:
					passed.Add(1)
				default:
					wrong.Store(&v)
				}
				select {
				case <-done:
					over = true
				case <-time.After(time.Millisecond): // a busy loop of errors would take the processor from the engine
				}
			}
		})
	}
	b.eventually("traffic flows", func() bool { return passed.Load() >= askers })
	f()
	close(done)
	wg.Wait()
	if v := wrong.Load(); v != nil {
		b.Fatalf("%v: while the engine restarted a request was denied, which had room: %s", b.limit, show(*v))
	}
	return passed.Load(), errs.Load()
}
