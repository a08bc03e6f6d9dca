package redis_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// What the script can't keep exactly is refused when it is bound, and what is just below is kept.
func TestBindRefuses(t *testing.T) {
	s := open(t, redis.Options{})
	for text, field := range map[string]string{
		"1/1ns burst=2251799813685249":               "burst",
		"refill-bucket 1/1us burst=2251799813685249": "burst",
		"leaky-queue 1/1ns queue=2251799813685248":   "queue",
		"fixed-window 2251799813685249/1h":           "count",
		"sliding-buckets 2251799813685249/1h":        "count",
		"hybrid 2251799813685249/1h":                 "",
		"cooldown 2251799813685249/1h":               "count",
		"4503599627371/1us burst=10":                 "",
		"4503599627370497/1s burst=10":               "count",
		"2251799813685248/1h":                        "",
		"1/1ns burst=2251799813685248":               "",
		"fixed-window 2251799813685248/1h":           "",
		"exponential 4503599627370496/1h":            "",
		"fixed-window 1/1ns":                         "period",
		"sliding-log 1048576/1h":                     "",
	} {
		_, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit(text)})
		var refused *algorithm.LimitError
		if errors.As(err, &refused) != (field != "") || refused != nil && (refused.Field != field || refused.Accept == "") {
			t.Errorf("%s: %v, want a refusal of %q", text, err, field)
		}
	}
	// Fractions of a microsecond that 53 bits can't tell.
	_, err := s.Bind(store.Spec{Limit: algorithm.Limit{Count: 4_999_999_999_999, Period: time.Hour + 1, Burst: 5}})
	var refused *algorithm.LimitError
	if !errors.As(err, &refused) || refused.Field != "count" || !strings.Contains(refused.Accept, "4503599627370") {
		t.Error(err)
	}
	if _, err := s.Bind(store.Spec{Limit: algorithm.Limit{Count: math.MaxInt64, Period: 1}}); err == nil {
		t.Error("more per microsecond than there are numbers is bound")
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := redis.New(nil, redis.Options{}); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Error(err)
	}
	c := raw(t, server(t).Addr())
	if _, err := redis.New(c, redis.Options{Prefix: "*"}); err == nil || !strings.Contains(err.Error(), `"*"`) {
		t.Error(err)
	}
	if _, err := redis.New(c, redis.Options{Timeout: -1}); err == nil || !strings.Contains(err.Error(), "-1ns") {
		t.Error(err)
	}
	if _, err := redis.Open(t.Context(), server(t).URL()+"?prefix=%2A", redis.Options{}); err == nil {
		t.Error("a prefix that is a pattern is accepted")
	}
}

// A client that the program has already will do, and is not closed.
func TestNew(t *testing.T) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server(t).Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := redis.New(c, redis.Options{Prefix: "new", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	take(t, bind(t, s, t.Name(), "1/1h"), "key", 1)
	s.Close()
	if err := c.Do(context.Background(), c.B().Ping().Build()).Error(); err != nil {
		t.Error(err)
	}
	if found := census(t, c, "new:*check*"); len(found) > 0 {
		t.Errorf("the check leaves %v", found)
	}
}
