package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/testengine"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A breaking client is one of a cluster, as it seems, of which some calls, counted from 0, go to a server that is dead.
type breaking struct {
	rueidis.Client
	dead   rueidis.Client
	breaks []int
	calls  int
}

func (*breaking) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

func (c *breaking) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	c.calls++
	if slices.Contains(c.breaks, c.calls-1) {
		return c.dead.Do(ctx, command)
	}
	return c.Client.Do(ctx, command)
}

// When a slot fails after another was charged, the error says what stays charged, and never that nothing was done.
func TestHalfway(t *testing.T) {
	server := testengine.Redis(t)
	dead := raw(t, server.Addr())
	server.Kill(t)
	until(t, func() error { // until the connection is known to be lost
		var op *net.OpError
		if err := dead.Do(t.Context(), dead.B().Ping().Build()).Error(); !errors.As(err, &op) || op.Op != "dial" {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
	c := &breaking{Client: raw(t, testengine.Redis(t).Addr()), dead: dead}
	s, err := redis.New(c, redis.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	check := func(name string, err error, want ...string) {
		t.Helper()
		halfway := len(want) > 0
		if err == nil || errors.Is(err, store.ErrNothingDone) == halfway || strings.Contains(err.Error(), "nothing was") == halfway {
			t.Errorf("%s: %v", name, err)
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v; want %q", name, err, text)
			}
		}
	}
	for name, test := range map[string]struct {
		breaks []int // two looks, two takings, one return
		want   []string
		left   int64
	}{
		"look":              {[]int{0}, nil, 10},
		"second look":       {[]int{1}, nil, 10},
		"taking":            {[]int{2}, nil, 10},
		"second taking":     {[]int{3}, []string{"given it back", "take all at"}, 10},
		"taking and return": {[]int{3, 4}, []string{"may stay so", "give back at"}, 9},
	} {
		a, b := part(t, s, t.Name()+name, "10/1h", "a", 1), part(t, s, t.Name()+name, "10/1h", "b", 1)
		take(t, a.Binding, "warm", 1)
		c.calls, c.breaks = 0, test.breaks
		_, err := s.TakeAll(t.Context(), []store.Part{a, b}, store.OwnClock, nil)
		c.breaks = nil
		check(name, err, test.want...)
		left := []int64{take(t, a.Binding, "a", 0).Remaining, take(t, b.Binding, "b", 0).Remaining}
		if min(left[0], left[1]) != test.left || max(left[0], left[1]) != 10 {
			t.Errorf("%s: %v remain, want %d of one", name, left, test.left)
		}
		for i, p := range []store.Part{a, b} {
			if left[i] == 9 && !strings.Contains(err.Error(), nameOf(t, t.Name()+name, "10/1h", p.Key)) {
				t.Errorf("%s: %v does not name %s", name, err, p.Key)
			}
		}
	}
	b := bind(t, s, t.Name(), "10/1h")
	c.calls, c.breaks = 0, []int{1}
	_, err = b.(store.Batcher).TakeMany(t.Context(), []store.KeyCost{{Key: "a", Cost: 1}, {Key: "b", Cost: 1}}, store.OwnClock, nil)
	check("batch", err, "some requests of the batch")
	c.calls, c.breaks = 0, []int{0}
	_, err = b.Do(t.Context(), "c", algorithm.Op{Cost: 1}, store.OwnClock)
	check("take", err)
}

func TestClosedStore(t *testing.T) {
	s := open(t, redis.Options{})
	b := bind(t, s, t.Name(), "10/1h")
	s.Close()
	_, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
	if !errors.Is(err, store.ErrNothingDone) || !strings.Contains(err.Error(), "is closed") {
		t.Error(err)
	}
}

func TestNoSentinel(t *testing.T) {
	_, err := redis.Open(t.Context(), "redis+sentinel://"+server(t).Addr()+"/m", redis.Options{Timeout: patience})
	if err == nil || !strings.Contains(err.Error(), "addresses of sentinels") || strings.Contains(err.Error(), "units") {
		t.Error(err)
	}
}
