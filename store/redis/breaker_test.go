package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A server that hangs under load is not waited for by more callers than those of the first timeout. Most of the commands that were
// sent to it are not carried out when it goes on, and none is sent while the circuit is open.
func TestHungServerUnderLoad(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{Timeout: time.Second})
	b := bind(t, s, t.Name(), "100000/87600h")
	works(t, b)
	c := raw(t, server.Addr())
	idle, before := runtime.NumGoroutine(), surely(t, b, "key", 0).Remaining
	server.Pause(t)
	var wg sync.WaitGroup
	var timeouts, cut, refused, most atomic.Int64
	for range 4000 {
		wg.Go(func() {
			_, err := b.Do(context.Background(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
			switch {
			case errors.Is(err, store.ErrNothingDone):
				refused.Add(1)
			case errors.Is(err, store.ErrUnavailable):
				cut.Add(1)
			case err != nil:
				timeouts.Add(1)
			default:
				t.Error("a server that is stopped has decided")
			}
		})
		most.Store(max(most.Load(), s.Counts().Calls))
	}
	wg.Wait()
	sent := timeouts.Load() + cut.Load()
	if most.Load() > store.DefaultMaxCalls || sent > store.DefaultMaxCalls+3 {
		t.Errorf("%d calls were in flight, %d were sent", most.Load(), sent)
	}
	for range 1000 {
		if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
			t.Fatal(err)
		}
	}
	until(t, func() error { // the goroutines of the client library end with its connections
		if n := runtime.NumGoroutine(); n > idle+50 {
			return fmt.Errorf("%d goroutines, %d before", n, idle)
		}
		return nil
	})
	resumed := time.Now()
	server.Resume(t)
	until(t, func() error {
		_, err := b.Do(t.Context(), "key", algorithm.Op{}, store.OwnClock)
		return err
	})
	t.Logf("served %v after it went on", time.Since(resumed).Round(time.Millisecond))
	for last := -1; last != calls(t, c, "evalsha"); time.Sleep(50 * time.Millisecond) { // until what the server has received is done
		last = calls(t, c, "evalsha")
	}
	ran := before - surely(t, b, "key", 0).Remaining
	t.Logf("%d timeouts, %d cut, %d refused; %d of %d commands sent were carried out after their callers had errors",
		timeouts.Load(), cut.Load(), refused.Load(), ran, sent)
	if ran > sent {
		t.Errorf("%d units were taken by %d calls that were sent", ran, sent)
	}
	if c := s.Counts(); c.Opened < 1 || c.Calls != 0 {
		t.Errorf("%+v", c)
	}
}

// One master of a cluster that hangs costs the keys of the others nothing.
func TestHungMaster(t *testing.T) {
	cluster := testengine.RedisCluster(t, "--cluster-node-timeout", "600000") // no failover
	s := openURL(t, cluster.URL(), redis.Options{Timeout: time.Second})
	b := bind(t, s, t.Name(), "100000/87600h")
	for i := range 300 {
		surely(t, b, fmt.Sprint(i), 1)
	}
	if n := len(s.Breaker().States()); n != 4 { // and the one of a cluster that is not known yet
		t.Errorf("%d circuits", n)
	}
	cluster.Nodes[1].Pause(t)
	var wg sync.WaitGroup
	var refused, served atomic.Int64
	for i := range 300 {
		wg.Go(func() {
			for range 20 {
				_, err := b.Do(context.Background(), fmt.Sprint(i), algorithm.Op{Cost: 1}, store.OwnClock)
				if err != nil {
					refused.Add(1)
				} else {
					served.Add(1)
				}
			}
		})
	}
	wg.Wait()
	until(t, func() error { // a busy machine may have opened the circuit of another for a moment
		for _, state := range s.Breaker().States() {
			if open := state.Position != store.Closed; open != (state.Node == cluster.Nodes[1].Addr()) {
				return fmt.Errorf("%+v", state)
			}
		}
		return nil
	})
	c := s.Counts()
	t.Logf("%d served, %d failed; %+v", served.Load(), refused.Load(), c)
	if served.Load() < 300 || c.Opened < 1 {
		t.Errorf("%d were served, %d timed out", served.Load(), c.Timeouts)
	}
	var up, down string // keys of a master that serves and of the one that hangs
	for i := 0; up == "" || down == ""; i++ {
		key := fmt.Sprint(i)
		if _, err := b.Do(t.Context(), key, algorithm.Op{Cost: 1}, store.OwnClock); err == nil {
			up = key
		} else {
			down = key
		}
	}
	parts := []store.Part{part(t, s, t.Name(), "100000/87600h", up, 1), part(t, s, t.Name(), "100000/87600h", down, 1)}
	left := surely(t, b, up, 0).Remaining
	if _, err := s.TakeAll(t.Context(), parts, store.OwnClock, nil); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
		t.Error(err)
	}
	if now := surely(t, b, up, 0).Remaining; now != left {
		t.Errorf("%d remain after a joint take that was refused, want %d", now, left)
	}
	cluster.Nodes[1].Resume(t)
	until(t, func() error {
		_, err := b.Do(t.Context(), down, algorithm.Op{Cost: 1}, store.OwnClock)
		return err
	})
}

// A store that is opened while its server is down serves when that is there; a wrong password shows in the state until it is right.
func TestLazy(t *testing.T) {
	server := testengine.Redis(t)
	server.Kill(t)
	s := openURL(t, server.URL()+"?lazy=true", redis.Options{Timeout: time.Second})
	b := bind(t, s, t.Name(), "1000/1h")
	_, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
		t.Error(err)
	}
	until(t, func() error {
		if cause := s.Breaker().State().Cause; !strings.Contains(fmt.Sprint(cause), "refused") {
			return cause
		}
		return nil
	})
	server.Start(t)
	works(t, b)
	c := raw(t, server.Addr())
	ask(t, c, "CONFIG", "SET", "requirepass", "right")
	wrong := openURL(t, strings.Replace(server.URL(), "://", "://:wrong@", 1), redis.Options{Timeout: time.Second, Lazy: true})
	wb := bind(t, wrong, t.Name(), "1000/1h")
	until(t, func() error {
		if s := wrong.Breaker().State(); s.Position == store.Closed || !strings.Contains(fmt.Sprint(s.Cause), "WRONGPASS") {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	ask(t, c, "CONFIG", "SET", "requirepass", "wrong")
	works(t, wb)
	if _, err := redis.Open(t.Context(), "redis://a:b:c?lazy=true", redis.Options{}); err == nil {
		t.Error("a URL that makes no sense was opened")
	}
	if _, err := redis.New(c, redis.Options{Lazy: true}); err == nil {
		t.Error("a client that has connected is lazy")
	}
}

// Connections to something that accepts and never answers are made by one probe at a time, and end.
func TestSilentListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var accepted atomic.Int64
	go func() {
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
			accepted.Add(1)
		}
	}()
	s := openURL(t, "redis://"+l.Addr().String(), redis.Options{Timeout: 50 * time.Millisecond, Lazy: true})
	b := bind(t, s, t.Name(), "1000/1h")
	for accepted.Load() < 3 {
		if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock); !errors.Is(err, store.ErrNothingDone) {
			t.Fatal(err)
		}
	}
	s.Close()
	if c := s.Counts(); c.Timeouts != 0 || c.Calls != 0 {
		t.Errorf("%+v", c)
	}
}

// What the server refuses has changed nothing, and opens no circuit if it is for the sake of one command.
func TestRefusalsOfTheServer(t *testing.T) {
	server := testengine.Redis(t)
	s := openURL(t, server.URL(), redis.Options{})
	b := bind(t, s, t.Name(), "1000/1h")
	works(t, b)
	c := raw(t, server.Addr())
	for _, test := range []struct {
		name, want string
		set, reset []string
	}{
		{"full", "OOM", []string{"CONFIG", "SET", "maxmemory", "1"}, []string{"CONFIG", "SET", "maxmemory", "0"}},
		{"replica", "READONLY", []string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		{"no replicas", "NOREPLICAS", []string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	} {
		ask(t, c, test.set...)
		for range 5 {
			_, err := b.Do(t.Context(), test.name, algorithm.Op{Cost: 1}, store.OwnClock)
			if !errors.Is(err, store.ErrNothingDone) || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v", test.name, err)
			}
		}
		if v := take(t, b, test.name, 0); v.Remaining != 1000 { // a peek is carried out
			t.Errorf("%s: %+v", test.name, v)
		}
		ask(t, c, test.reset...)
	}
	if state := s.Breaker().State(); state.Position != store.Closed || s.Counts().Rejections != 15 {
		t.Errorf("%+v, %+v", state, s.Counts())
	}
}

// A server that refuses everybody opens the circuit, and closes it when it does not any more.
func TestServerThatRefusesEverybody(t *testing.T) {
	server := testengine.Redis(t)
	c := raw(t, server.Addr())
	s := openURL(t, server.URL(), redis.Options{})
	b := bind(t, s, t.Name(), "1000/1h")
	works(t, b)
	ask(t, c, "CONFIG", "SET", "requirepass", "secret")
	ask(t, c, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	until(t, func() error {
		_, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "NOAUTH") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	})
	ask(t, c, "CONFIG", "SET", "requirepass", "")
	works(t, b)
	if n := s.Counts(); n.Unready < 3 {
		t.Errorf("%+v", n)
	}
}
