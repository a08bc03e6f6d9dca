package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// nameOf returns the name of a state under the default prefix.
func nameOf(t testing.TB, name, text, key string) string {
	t.Helper()
	names, err := store.NewNames("", store.Spec{Name: limiter(name, text), Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return names.Name(key)
}

// foreign values are states of no limit, written as the arguments of a command around the name of the key.
var foreign = []string{
	"SET|", "SET|abc", "SET|nan", "SET|inf", "SET|-", "SET|1e400", "SET|0x7fff", "SET| 12 ", "SET|12 34", "SET|12:", "SET|:12", "SET|1:2:3:4",
	"SET|9999999999999999999999:1", "SET|1:-5", "SET|99999999999999999999:99999999999999999999", "SET|-1:-1", "SET|1:nan", "SET|1:inf", "SET|2:11:1", "SET|9999999999999999",
	"SET|1764000000000000:1e", "SET|498683:99999999999999999999:1", "SET|498682:1:99999999999999999999", "SET|\x00", "SET|1:1\n",
	"SET|" + strings.Repeat("9", 400), "RPUSH|a", "RPUSH|1:1|x", "RPUSH|0:0", "RPUSH|0:0|99999999999999999:1", "RPUSH|0:0|1:1e3", "HSET|a|b", "SADD|a",
}

var foreignOps = []algorithm.Op{
	{Cost: 1}, {Cost: 3}, {}, {Cost: 1 << 40}, {Kind: algorithm.TakeUpTo, Cost: 2}, {Kind: algorithm.Refund, Cost: 1},
	{Kind: algorithm.Cancel, Cost: 1, End: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()},
}

// What is no state of the limit is an error that names the key, and stays as it is, whatever is asked; a reset forgets it.
func TestForeignValues(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, text := range []string{
		"100/1h", "7/1s burst=3", "leaky-queue 4/1h queue=4", "fixed-window 10/1h", "quota-reset 10/1h", "sliding-log 10/1h", "sliding-window 10/1h",
		"sliding-buckets 10/1h", "refill-bucket 10/1h", "hybrid 10/1h", "exponential 10/1h", "exponential 10/1h strict",
	} {
		b, name := bind(t, s, t.Name(), text), nameOf(t, t.Name(), text, "key")
		for _, value := range foreign {
			words := strings.Split(value, "|")
			ask(t, c, append([]string{words[0], name}, words[1:]...)...)
			dump, _ := ask(t, c, "DUMP", name).ToString()
			for _, op := range foreignOps {
				_, err := b.Do(t.Context(), "key", op, store.OwnClock)
				if !errors.Is(err, store.ErrNothingDone) || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
					t.Errorf("%s, %q, %+v: %v", text, value, op, err)
				}
			}
			if _, _, err := b.(store.Inspector).Inspect(t.Context(), "key", store.OwnClock); err == nil {
				t.Errorf("%s, %q: it is inspected", text, value)
			}
			if now, _ := ask(t, c, "DUMP", name).ToString(); now != dump {
				t.Errorf("%s, %q: it was written over", text, value)
			}
			do(t, b, "key", algorithm.Op{Kind: algorithm.Reset})
			if v := take(t, b, "key", 1); v.Granted != 1 {
				t.Errorf("%s, %q: after a reset %+v", text, value, v)
			}
			ask(t, c, "DEL", name)
		}
	}
}

// One foreign value among several keys leaves none of them half done.
func TestForeignValueAmongOthers(t *testing.T) {
	s := open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, value := range []string{"SET|garbage", "RPUSH|x|y", "HSET|a|b"} {
		for _, text := range []string{"10/1h", "7/1h", "fixed-window 10/1h", "exponential 10/1h", "sliding-log 10/1h", "hybrid 10/1h"} {
			b, name := bind(t, s, t.Name(), text), nameOf(t, t.Name(), text, "b")
			words := strings.Split(value, "|")
			ask(t, c, append([]string{words[0], name}, words[1:]...)...)
			requests := []store.KeyCost{{Key: "a", Cost: 3}, {Key: "a", Cost: 1}, {Key: "b", Cost: 1}, {Key: "c", Cost: 1}}
			if done, err := b.(store.Batcher).TakeMany(t.Context(), requests, store.OwnClock, nil); len(done) > 0 || !errors.Is(err, store.ErrNothingDone) ||
				!strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
				t.Errorf("%s, %q: %v, %v", text, value, done, err)
			}
			for _, cost := range []int64{0, 1} {
				parts := []store.Part{part(t, s, t.Name(), "quota-reset 9/1h", "q", 1), part(t, s, t.Name(), text, "b", cost)}
				if _, err := s.TakeAll(context.Background(), parts, store.OwnClock, nil); !errors.Is(err, store.ErrNothingDone) {
					t.Errorf("%s, %q: %v", text, value, err)
				}
			}
			if v, w, x := take(t, b, "a", 0), take(t, b, "c", 0), take(t, bind(t, s, t.Name(), "quota-reset 9/1h"), "q", 0); v.Reset+w.Reset+x.Reset > 0 {
				t.Errorf("%s, %q: %+v, %+v, %+v", text, value, v, w, x)
			}
			ask(t, c, "DEL", name)
		}
	}
}
