package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/memory"
)

// far is a store that is a round trip away. It notes the order in which operations on each key came.
type far struct {
	store.Store
	trip    time.Duration
	batches bool // its bindings are store.Batchers

	mu     sync.Mutex
	order  map[string][]int64 // costs by key
	trips  int
	most   atomic.Int64 // under way at once
	active atomic.Int64
	hangs  string // operations on this key never end
}

func newFar(trip time.Duration) *far {
	return &far{trip: trip, order: map[string][]int64{}}
}

type farBinding struct {
	store.Binding
	far *far
}

type farBatcher struct {
	farBinding
	capacity int64
}

func (f *far) Bind(spec store.Spec) (store.Binding, error) {
	b, err := f.Store.Bind(spec)
	if f.batches {
		return farBatcher{farBinding{b, f}, spec.Limit.Capacity()}, err
	}
	return farBinding{b, f}, err
}

func (f *far) travel(ctx context.Context, requests ...store.KeyCost) error {
	f.mu.Lock()
	f.trips++
	f.most.Store(max(f.most.Load(), f.active.Add(1)))
	for _, r := range requests {
		key := strings.Clone(r.Key)
		f.order[key] = append(f.order[key], r.Cost)
	}
	f.mu.Unlock()
	defer f.active.Add(-1)
	trip := f.trip
	if requests[0].Key == f.hangs {
		trip = time.Hour
	}
	select {
	case <-time.After(trip):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b farBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	if err := b.far.travel(ctx, store.KeyCost{Key: key, Cost: op.Cost}); err != nil {
		return algorithm.Verdict{}, err
	}
	return b.Binding.Do(ctx, key, op, now)
}

func (b farBatcher) TakeMany(ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	if err := b.far.travel(ctx, requests...); err != nil {
		return decisions, err
	}
	for _, r := range requests {
		v, err := b.Binding.Do(ctx, r.Key, algorithm.Op{Cost: r.Cost}, now)
		if err != nil {
			return decisions, err
		}
		decisions = append(decisions, v.Decision(b.capacity))
	}
	return decisions, nil
}

// waiting serves a store that waits, in a bubble whose time is the test's, to clients that have pipes.
func waiting(t *testing.T, f *far, o resp.Options, test func(t *testing.T, server *resp.Server, first *client, dial func() *client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		f.Store = memory.New(memory.Options{}) // by the clock of the bubble
		o.Limiters, o.Waits = limiters.New(f), true
		server := resp.New(o)
		go func() { _ = server.Serve(p) }()
		dial := func() *client {
			nc := p.dial()
			t.Cleanup(func() { nc.Close() })
			return &client{t, nc, bufio.NewReader(nc)}
		}
		test(t, server, dial(), dial)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TestS23SlowStoreIsWaitedForTogether is pitfall S23: a hundred keys in a pipeline, over a store that takes 100 ms.
func TestS23SlowStoreIsWaitedForTogether(t *testing.T) {
	for batches, want := range map[bool]time.Duration{false: 200 * time.Millisecond, true: 100 * time.Millisecond} {
		f := newFar(100 * time.Millisecond)
		f.batches = batches
		waiting(t, f, resp.Options{Service: &operation.Service{}}, func(t *testing.T, _ *resp.Server, c *client, _ func() *client) {
			began := time.Now()
			c.send(lines(100, "WEIR.TAKE k# 9/1h"))
			for range 100 {
				if got := c.reply(); !strings.HasPrefix(got, "[1 9 8 ") {
					t.Errorf("batches %v: %s", batches, got)
				}
			}
			if took := time.Since(began); took != want {
				t.Errorf("batches %v: took %v, want %v", batches, took, want)
			}
			if most := f.most.Load(); most > 64 {
				t.Errorf("batches %v: %d operations were under way at once", batches, most)
			}
		})
	}
}

// lines is a line n times, with numbers in place of #.
func lines(n int, line string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(line, "#", strconv.Itoa(i)) + "\r\n")
	}
	return b.String()
}

func TestPipelineOverAWaitingStoreAnswersAsOneByOne(t *testing.T) {
	commands := pipelineOfTakes(1000)
	alone := func() string {
		_, address := start(t, resp.Options{Service: &operation.Service{}})
		c := dial(t, address)
		var replies []string
		for _, command := range commands {
			c.send(command)
			replies = append(replies, c.reply())
		}
		return verdicts(replies)
	}()
	for _, batches := range []bool{false, true} {
		f := newFar(time.Millisecond)
		f.batches = batches
		waiting(t, f, resp.Options{Service: &operation.Service{}}, func(t *testing.T, _ *resp.Server, c *client, _ func() *client) {
			go func() { _, _ = io.WriteString(c, strings.Join(commands, "")) }()
			var replies []string
			for range commands {
				replies = append(replies, c.reply())
			}
			if got := verdicts(replies); got != alone {
				t.Errorf("batches %v: %s", batches, firstDifference(got, alone, commands))
			}
			if batches && f.trips > len(commands)*3/4 {
				t.Errorf("batches %v: %d trips for %d commands", batches, f.trips, len(commands))
			}
		})
	}
}

func TestCommandsForOneKeyKeepTheirOrder(t *testing.T) {
	f := newFar(time.Millisecond)
	waiting(t, f, resp.Options{Service: &operation.Service{}}, func(t *testing.T, _ *resp.Server, c *client, _ func() *client) {
		var pipeline strings.Builder
		for i := range 60 {
			switch key := "k" + strconv.Itoa(i%3); i % 4 {
			case 0:
				fmt.Fprintf(&pipeline, "WEIR.TAKE %s 900/1h COST %d\r\n", key, i)
			case 1:
				fmt.Fprintf(&pipeline, "WEIR.REFUND %s 800/1h COST %d\r\n", key, i)
			case 2:
				fmt.Fprintf(&pipeline, "CL.THROTTLE %s 900 1 1 %d\r\n", key, i)
			default:
				fmt.Fprintf(&pipeline, "WEIR.TAKEUPTO %s 700/1h COST %d\r\n", key, i)
			}
		}
		c.send(pipeline.String())
		for range 60 {
			c.reply()
		}
		for key, costs := range f.order {
			if !slices.IsSorted(costs) {
				t.Errorf("%s: commands were carried out in the order %d", key, costs)
			}
		}
	})
}

func TestSlowCallHoldsUpNobodyElse(t *testing.T) {
	f := newFar(0)
	f.hangs = "slow"
	waiting(t, f, resp.Options{Service: &operation.Service{Timeout: 3 * time.Second}}, func(t *testing.T, server *resp.Server, c *client, dial func() *client) {
		began := time.Now()
		c.send(lines(3, "WEIR.TAKE k# 9/1h") + "WEIR.TAKE slow 9/1h\r\nWEIR.TAKE k2 9/1h\r\nWEIR.TAKE slow 9/1h\r\nPING\r\n")
		other := dial()
		if got := other.do("WEIR.TAKE k 9/1h"); !strings.HasPrefix(got, "[1 9 8 ") || time.Since(began) != 0 {
			t.Errorf("another client waits for %v and is told %s", time.Since(began), got)
		}
		want := []string{"[1 9 8", "[1 9 8", "[1 9 8", "ERR no decision", "[1 9 7", "ERR no decision", "PONG"}
		for i, prefix := range want {
			if got := c.reply(); !strings.HasPrefix(got, prefix) {
				t.Errorf("reply %d is %s, want %s…", i, got, prefix)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("gave up after %v, want 3s for all of them", took)
		}
		c.do("PING")
		synctest.Wait()
		if s := server.Stats(); s.Undecided != 2 || s.Errors != 2 || s.Allowed != 5 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestRepliesThatAreNotWanted(t *testing.T) {
	f := newFar(10 * time.Millisecond)
	waiting(t, f, resp.Options{Service: &operation.Service{}}, func(t *testing.T, server *resp.Server, c *client, _ func() *client) {
		began := time.Now()
		c.send("WEIR.TAKE a 9/1h\r\nCLIENT REPLY OFF\r\n" + lines(20, "WEIR.TAKE k# 9/1h") +
			"WEIR.TAKE k nonsense\r\nPING\r\nWEIR.TAKE a 9/1h\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nWEIR.TAKE a 9/1h\r\nWEIR.TAKE a 9/1h\r\nPING\r\n")
		for i, prefix := range []string{"[1 9 8", "OK", "[1 9 5", "PONG"} {
			if got := c.reply(); !strings.HasPrefix(got, prefix) {
				t.Errorf("reply %d is %s, want %s…", i, got, prefix)
			}
		}
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("took %v: the muted commands waited one after another", took)
		}
		synctest.Wait()
		if s := server.Stats(); s.Allowed != 24 || s.Errors != 1 {
			t.Errorf("stats: %+v", s)
		}
	})
}

func TestTransactionOverAWaitingStore(t *testing.T) {
	f := newFar(10 * time.Millisecond)
	waiting(t, f, resp.Options{Service: &operation.Service{}}, func(t *testing.T, _ *resp.Server, c *client, _ func() *client) {
		c.send("MULTI\r\nWEIR.TAKE a 9/1h\r\nPING\r\nWEIR.TAKE b 9/1h\r\nWEIR.TAKE a 9/1h\r\nWEIR.TAKE a x\r\nEXEC\r\n")
		for _, want := range []string{"OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED", "QUEUED"} {
			if got := c.reply(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		want := "[[1 9 8 0 400000000 0] PONG [1 9 8 0 400000000 0] [1 9 7 0 799990000 0] ERR limit has"
		if got := c.reply(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "lease=duration]") {
			t.Errorf("got %s", got)
		}
	})
}

// A shutdown waits for what the store is asked, and for commands behind it that had arrived but were not read yet.
func TestShutdownWaitsForAWaitingStore(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := newGate()
	server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(g), Waits: true}})
	go func() { _ = server.Serve(l) }()
	c := dial(t, l.Addr().String())
	c.send("WEIR.TAKE k 1/1h\r\n")
	<-g.entered
	c.send("WEIR.TAKE l 1/1h\r\nPING\r\n")
	down := make(chan error, 1)
	go func() { down <- server.Shutdown(t.Context()) }()
	eventually(t, "the server does not accept", func() bool {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	timer := time.After(100 * time.Millisecond) // twice as long as it goes on reading
	<-timer
	close(g.open)
	if got := c.expectClosed(); strings.Count(got, "*6\r\n:1\r\n") != 2 || !strings.HasSuffix(got, "+PONG\r\n") {
		t.Errorf("the client was told %q", got)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

func TestOptionsOfWeirCommands(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock), TrustClientTime: true}})
	c := dial(t, address)
	c.expect([][2]string{
		{`WEIR.TAKE k 2/3s NAME login AT 1700000000000000`, "[1 2 1 0 1500000 0]"},
		{`WEIR.TAKE k 2/3s NAME login NS AT 1700000000000000001`, "[1 2 0 0 2999999999 0]"},
		{`WEIR.TAKE k 2/3s TIME AT 1700000000000000`, "[1 2 1 0 1500000 0 1700000000000000]"},
		{`WEIR.TAKE k 2/3s TIME NS AT 1700000000000000000`, "[1 2 0 0 3000000000 0 1700000000000000000]"},
		{`WEIR.PEEK k 2/3s TIME AT 1700000000000000`, "[1 2 0 0 3000000 0 1700000000000000]"},
		{`WEIR.CANCEL k 2/3s END 1700000003000000 AT 1700000001000000`, "[1 2 1 0 500000 0 1]"},
		{`WEIR.CANCEL k 2/3s END 1700000003000000000 NS TIME AT 1700000001000000000`, "[1 2 2 0 0 0 1 1700000001000000000]"},
		{`WEIR.TAKEUPTO k 2/3s COST 5 AT 1700000010000000`, "[1 2 0 0 3000000 0 2]"},
		{`WEIR.TAKEUPTO k 2/3s COST 5 AT 1700000010000000`, "[0 2 0 1500000 3000000 0 0]"},
		{`WEIR.TAKEUPTO k 2/3s COST 5 TIME AT 1700000011500000`, "[1 2 0 0 3000000 0 1 1700000011500000]"},
		{`WEIR.RESET k 2/3s TIME AT 1700000011500000`, "[1 2 2 0 0 0 1700000011500000]"},
		{`WEIR.RESET k 2/3s NAME login`, "OK"},
		{`WEIR.PEEK k 2/3s NAME login AT 1700000000000000`, "[1 2 2 0 0 0]"},
		{`WEIR.TAKE d "gcra 1/1m burst=3" NAME n DEBT AT 1700000000000000`, "[1 3 2 0 60000000 0]"},
		{`WEIR.TAKE d "gcra 1/1m burst=1" NAME n DEBT AT 1700000000000000`, "[0 1 0 60000000 60000000 0]"},
		{`WEIR.TAKE d "fixed-window 1/1m" DEBT`, `ERR limit has text "fixed-window 1/1m"; accepted: where limits share a state, one of the linear family, of up to 16,000,000 per second, that refills within 4 years`},
		{`WEIR.CANCEL k 2/3s`, "ERR END is missing; accepted: END time, the time of the take and its reset_after"},
		{`WEIR.CANCEL k 2/3s END x`, `ERR END is "x"; accepted: a whole number from -5617123009213693 to 5617123009213693`},
		{`WEIR.TAKE k 2/3s END 1`, `ERR syntax error at "END"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.TAKE k 2/3s NS NS`, `ERR syntax error at "NS"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
		{`WEIR.TAKE k 2/3s NS AT 9223372036854775807`, "ERR AT is out of range; accepted: a time in the years 1866 to 2074"},
		{`WEIR.TAKE k 2/3s NS AT -9223372036854775808`, `ERR AT is "-9223372036854775808"; accepted: a whole number from -9223372036854775807 to 9223372036854775807`},
	}...)
}

// A key under a name has one state, whatever the limit.
func TestLimitsOfANameOnTheWire(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock), TrustClientTime: true}})
	c := dial(t, address)
	c.expect([][2]string{
		{`WEIR.TAKE k "fixed-window 10/1h" COST 7 NAME n`, "[1 10 3 0 3600000000 0]"},
		{`WEIR.PEEK k "fixed-window 20/1h" NAME n`, "[1 20 13 0 3600000000 0]"},
		{`WEIR.TAKE k "fixed-window 5/1h" NAME n`, "[0 5 0 3600000000 3600000000 0]"},
		{`WEIR.TAKEUPTO k "fixed-window 20/1h" COST 100 NAME n`, "[1 20 0 0 3600000000 0 13]"},
		{`WEIR.TAKE k "fixed-window 10/1h" NAME other`, "[1 10 9 0 3600000000 0]"},
		{`WEIR.TAKE k "fixed-window 10/1h"`, "[1 10 9 0 3600000000 0]"},
		{`WEIR.TAKE k "fixed-window 11/1h"`, "[1 11 10 0 3600000000 0]"},
		{`WEIR.TAKEALL k "fixed-window 20/1h" NAME n AND k "fixed-window 9/1h"`, "[[0 20 0 3600000000 3600000000 0] [0 20 0 3600000000 3600000000 0] [1 9 9 0 0 0]]"},
		{`WEIR.TAKEALL k 2/1h NAME n AND k 3/1h NAME n`, `ERR limit of NAME "n" is 2/1h and 3/1h for one key; accepted: one limit for each name`},
		{`WEIR.TAKE l "5/day tz=Europe/Berlin" AT 1700000000000000`, "[1 5 4 0 2800000000 0]"},
		{`WEIR.TAKE l "5/day tz=Berlin"`, `ERR limit has tz "Berlin"; accepted: the IANA's name of a time zone, such as Europe/Berlin or UTC`},
	}...)
}

func TestLeasesOnTheWire(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}})
	dial(t, address).expect([][2]string{
		{`WEIR.TAKE k "concurrent 2 lease=10s" TIME AT 1700000000000000`, "[1 2 1 0 10000000 0 1700000000000000]"},
		{`WEIR.RENEW k "concurrent 2 lease=10s" END 1700000010000000 AT 1700000005000000`, "[1 2 1 0 10000000 0 1]"},
		{`WEIR.RENEW k "concurrent 2 lease=10s" END 1700000015000000 TIME NS AT 1700000005000000000`, "[1 2 0 0 10000000000 0 1 1700000005000000000]"},
		{`WEIR.RENEW k "concurrent 2 lease=10s" END 1700000011000000 AT 1700000006000000`, "[0 2 0 9000000 9000000 0 0]"},
		{`WEIR.CANCEL k "concurrent 2 lease=10s" END 1700000015000000 AT 1700000006000000`, "[1 2 1 0 9000000 0 1]"},
		{`WEIR.RENEW k "concurrent 2 lease=10s"`, "ERR END is missing; accepted: END time, the time of the take and its reset_after"},
		{`WEIR.TAKEALL k "concurrent 2 lease=10s" AND l 2/1s AT 1700000007000000 TIME`,
			"[[1 2 0 0 10000000 0] [1 2 0 0 10000000 0 1700000007000000] [1 2 1 0 500000 0 1700000007000000]]"},
	}...)
}

func TestReservationsOnTheWire(t *testing.T) {
	_, address := start(t, resp.Options{Service: &operation.Service{TrustClientTime: true}})
	const missing = "ERR NAME is missing; accepted: NAME name, of the limiter under which reservations are kept"
	dial(t, address).expect([][2]string{
		{`WEIR.RESERVE k "fixed-window 10/1h" ID 7 LIFE 60000000 COST 6 NAME n AT 1700002800000000`, "[1 10 4 0 3600000000 0 6]"},
		{`WEIR.RESERVE k "fixed-window 10/1h" ID 7 LIFE 60000000 COST 1 NAME n AT 1700002800000000`, "[1 10 4 0 3600000000 0 6]"},
		{`WEIR.RESERVE k "fixed-window 10/1h" ID 8 LIFE 60000000 COST 5 NAME n AT 1700002800000000`, "[0 10 4 3600000000 3600000000 0 0]"},
		{`WEIR.COMMIT k "fixed-window 10/1h" ID 7 COST 2 NAME n AT 1700002800000000`, "[1 10 8 0 3600000000 0 2]"},
		{`WEIR.COMMIT k "fixed-window 10/1h" ID 7 COST 2 NAME n AT 1700002800000000`, "[0 10 8 -1 3600000000 0 0]"},
		{`WEIR.RESERVE k "fixed-window 10/1h" NS ID -9223372036854775808 LIFE 1000 NAME n AT 1700002800000000000 TIME`, "[1 10 7 0 3600000000000 0 1 1700002800000000000]"},
		{`WEIR.PEEK k "fixed-window 10/1h" NAME n AT 1700002800000001`, "[1 10 8 0 3599999999 0]"},
		{`WEIR.TAKEALL k "fixed-window 10/1h" ID 9 LIFE 60000000 COST 3 NAME n AND l 2/1s TIME AT 1700002801000000`,
			"[[1 2 1 0 3599000000 0] [1 10 5 0 3599000000 0 3 1700002801000000] [1 2 1 0 500000 0 1700002801000000]]"},
		{`WEIR.COMMIT k "fixed-window 10/1h" ID 9 COST 0 NAME n AT 1700002801000000`, "[1 10 8 0 3599000000 0 0]"},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 1000000`, missing},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 1000000 NAME ""`, missing},
		{`WEIR.COMMIT k 2/1s ID 1`, missing},
		{`WEIR.TAKEALL k 2/1s ID 1 LIFE 1000000`, missing},
		{`WEIR.RESERVE k 2/1s LIFE 1 NAME n`, "ERR ID is missing; accepted: ID id, a number that the client chooses at random"},
		{`WEIR.RESERVE k 2/1s ID 1 NAME n`, "ERR LIFE is missing; accepted: LIFE time, for how long the reservation can be settled"},
		{`WEIR.TAKEALL k 2/1s ID 1 NAME n`, "ERR LIFE is missing; accepted: LIFE time, for how long the reservation can be settled"},
		{`WEIR.TAKEALL k 2/1s LIFE 1 NAME n`, "ERR ID is missing; accepted: ID id, a number that the client chooses at random"},
		{`WEIR.RESERVE k 2/1s ID 0 LIFE 1 NAME n`, `ERR ID is "0"; accepted: a whole number of 64 bits, other than 0`},
		{`WEIR.COMMIT k 2/1s ID x NAME n`, `ERR ID is "x"; accepted: a whole number of 64 bits, other than 0`},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 0 NAME n`, `ERR LIFE is "0"; accepted: a whole number from 1 to 315360000000000`},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 999 NS NAME n`, `ERR LIFE is "999"; accepted: a whole number from 1000 to 315360000000000000`},
		{`WEIR.TAKEALL k 2/1s ID 1 LIFE 999 NAME n AND k 3/1s NS`, `ERR LIFE is "999"; accepted: a whole number from 1000 to 315360000000000000`},
		{`WEIR.COMMIT k 2/1s ID 1 LIFE 1 NAME n`, `ERR syntax error at "LIFE"; accepted: COST n, AT time, NAME name, NS, TIME, ID id, LATE, each once`},
		{`WEIR.RESERVE k "fixed-window 10/1h" ID 5 LIFE 1000000 COST 6 NAME r AT 1700002800000000`, "[1 10 4 0 3600000000 0 6]"},
		{`WEIR.RESERVE k "fixed-window 10/1h" ID 5 LIFE 1000000 COST 6 NAME r AT 1700002800900000`, "[1 10 4 0 3599100000 0 6]"},
		{`WEIR.PEEK k "fixed-window 10/1h" NAME r AT 1700002801899999`, "[1 10 4 0 3598100001 0]"},
		{`WEIR.PEEK k "fixed-window 10/1h" NAME r AT 1700002801900000`, "[1 10 10 0 0 0]"},
		{`WEIR.COMMIT k "fixed-window 10/1h" ID 5 COST 12 NAME r AT 1700002801900000`, "[0 10 10 -1 0 0 0]"},
		{`WEIR.COMMIT k "fixed-window 10/1h" ID 5 COST 12 NAME r LATE AT 1700002801900000`, "[1 10 0 0 7198100000 0 12]"},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 1 NAME n LATE`, `ERR syntax error at "LATE"; accepted: COST n, AT time, NAME name, NS, TIME, ID id, LIFE time, each once`},
		{`WEIR.RESERVE k 2/1s ID 1 LIFE 1 NAME n DEBT`, `ERR syntax error at "DEBT"; accepted: COST n, AT time, NAME name, NS, TIME, ID id, LIFE time, each once`},
		{`WEIR.TAKE k 2/1s ID 1`, `ERR syntax error at "ID"; accepted: COST n, AT time, NAME name, NS, TIME, DEBT, ONERROR deny|allow|local, each once`},
	}...)
}

func TestSeveralLimitsOnTheWire(t *testing.T) {
	clock := newStoppedClock()
	_, address := start(t, resp.Options{Service: &operation.Service{Limiters: limiters.New(clock), TrustClientTime: true}})
	c := dial(t, address)
	c.expect([][2]string{
		{`WEIR.TAKEALL u 2/2s AND ip 3/3s COST 2 AND u 2/2s NAME n`, "[[1 2 1 0 2000000 0] [1 2 1 0 1000000 0] [1 3 1 0 2000000 0] [1 2 1 0 1000000 0]]"},
		{`WEIR.TAKEALL u 2/2s AND ip 3/3s COST 2`, "[[0 2 1 1000000 2000000 0] [1 2 1 0 1000000 0] [0 3 1 1000000 2000000 0]]"},
		{`WEIR.PEEK u 2/2s`, "[1 2 1 0 1000000 0]"},                                                               // was not charged
		{`WEIR.TAKEALL u 2/2s AND u "2/2000ms"`, "[[1 2 0 0 2000000 0] [1 2 0 0 2000000 0] [1 2 0 0 2000000 0]]"}, // one state: charged once
		{`WEIR.TAKEALL a 2/2s`, "[[1 2 1 0 1000000 0] [1 2 1 0 1000000 0]]"},
		{`WEIR.TAKEALL a 2/2s AND`, "ERR syntax error: AND needs a key and a limit"},
		{`WEIR.TAKEALL a 2/2s AND b`, "ERR syntax error: AND needs a key and a limit"},
		{`WEIR.TAKEALL a 2/2s AND b bad`, `ERR limit has text "bad"; accepted: [algorithm] count/period, such as 100/1m, gcra 10/1s burst=20 or 500/day, or concurrent count lease=duration`},
		{`WEIR.TAKEALL a 2/2s AT 1 AND b 2/2s AT 1`, `ERR syntax error at "AT"; accepted: COST n, AT time, NAME name, NS, TIME, ID id, LIFE time, AND key limit ..., ONERROR deny|allow|local, each once`},
		{`WEIR.TAKEALL a 2/2s DEBT`, `ERR syntax error at "DEBT"; accepted: COST n, AT time, NAME name, NS, TIME, ID id, LIFE time, AND key limit ..., ONERROR deny|allow|local, each once`},
		{`WEIR.TAKEALL x 2/2s NS AND y 2/2s COST 3 AT 1700000000000000000`, "[[0 2 2 -1 0 0] [1 2 2 0 0 0] [0 2 2 -1 0 0]]"},
	}...)
}
