package memcached

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirlimit/weir/store/swap"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"memcached://a":                     "[a:11211]",
		"memcached://a:1,b:2/":              "[a:1 b:2]",
		"memcached://[::1],[2001:db8::1]:7": "[[::1]:11211 [2001:db8::1]:7]",
		"memcached:///run/memcached.sock":   "[/run/memcached.sock]",
		"memcached://a?timeout=5ms&prefix=shop&clock_skew=3s&connections=7": "[a:11211]",
	} {
		addrs, o, err := parse(text, Options{Prefix: "mine"})
		if got := fmt.Sprint(addrs); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
		if strings.Contains(text, "?") {
			if o.Timeout != 5*time.Millisecond || o.Prefix != "shop" || o.ClockSkew != 3*time.Second || o.Connections != 7 {
				t.Errorf("%s: %+v", text, o)
			}
		} else if o.Prefix != "mine" {
			t.Errorf("%s: the prefix is %q", text, o.Prefix)
		}
	}
	if _, o, err := parse("memcached://a?clock_skew=0s", Options{}); err != nil || o.withDefaults().ClockSkew >= 0 {
		t.Errorf("no skew: %v, %v", o.ClockSkew, err)
	}
}

func TestURLsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `begins with ""; accepted: memcached://host:port`,
		"redis://a":                         `begins with "redis"`,
		"memcacheds://a":                    `begins with "memcacheds"`,
		"memcached://":                      `the server ""`,
		"memcached://a,":                    `the server ""`,
		"memcached://a:0":                   `the server "a:0"`,
		"memcached://a:65536":               `the server "a:65536"`,
		"memcached://a:x":                   `the server "a:x"`,
		"memcached://a/0":                   `the server "a/0"`,
		"memcached://::1":                   `the server "::1"`,
		"memcached://me:geheim@a":           "users (SASL) are not supported",
		"memcached://a?timeout=5":           `timeout is "5"; accepted: a duration above 0`,
		"memcached://a?timeout=0s":          `timeout is "0s"`,
		"memcached://a?clock_skew=-1s":      `clock_skew is "-1s"`,
		"memcached://a?connections=0":       `connections is "0"; accepted: 1 to 65535`,
		"memcached://a?connections=many":    `connections is "many"`,
		"memcached://a?prefix=*":            `prefix is "*"`,
		"memcached://a?prefix=a&prefix=b":   "prefix 2 times",
		"memcached://a?tls=on":              `the parameter "tls"; accepted: timeout, prefix, clock_skew, connections`,
		"memcached://a?%zz":                 "parameters of the URL",
		"memcached:///run/m.sock?timeout=x": `timeout is "x"`,
	} {
		_, err := Open(context.Background(), text, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func TestRecordsAreText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := swap.Record{
			Head:  rapid.SampledFrom([]string{"", "5/1m", "sliding-log 3/1m", "5/1m;owed=3@1700000000000000", "5/1m;was=30/720h|0|1797860774610348"}).Draw(t, "head"),
			State: rapid.SliceOf(rapid.Int64()).Draw(t, "state"),
		}
		got, err := parseRecord(formatRecord(r))
		if err != nil || got.Head != r.Head || !slices.Equal(got.State, r.State) {
			t.Fatalf("%v became %s, %v, %v", r, formatRecord(r), got, err)
		}
	})
	for want, r := range map[string]swap.Record{
		"1700000000142857:1":       {State: []int64{1_700_000_000_142_857, 1}},
		"5/1m|1700000000142857":    {Head: "5/1m", State: []int64{1_700_000_000_142_857}},
		"5/1m;hold=7,0,1,2,3,400|": {Head: "5/1m;hold=7,0,1,2,3,400"},
		"":                         {},
	} {
		if got := string(formatRecord(r)); got != want {
			t.Errorf("%+v is %s, want %s", r, got, want)
		}
	}
	for _, text := range []string{"hello", ":", "1:", "1:2:x", "9223372036854775808", "1 2", "\x00", "|1", "a|b", "a|1|b", "|"} {
		if r, err := parseRecord([]byte(text)); err == nil || !r.Empty() || !strings.Contains(err.Error(), "accepted: integers") {
			t.Errorf("%q is %v, %v", text, r, err)
		}
	}
}

// FuzzRecord reads what others may have put into memcached.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{"", "1700000000142857:1", "5/1m|1700000000142857", "5/1m;owed=3@7|", "|", "a||1", "-1:+1:01", "x|:"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRecord(text)
		if err != nil {
			return
		}
		again, err := parseRecord(formatRecord(r))
		if err != nil || again.Head != r.Head || !slices.Equal(again.State, r.State) {
			t.Fatalf("%q is %+v, and read again %+v, %v", text, r, again, err)
		}
	})
}

// Pitfalls A12 and A14: an expiration is never 0, which would be for ever, and never early.
func TestA14Expiration(t *testing.T) {
	now := time.Unix(1_700_000_000, 999_000_000)
	for life, want := range map[time.Duration]int32{
		1:                         2,
		500 * time.Millisecond:    2,
		time.Second:               2,
		time.Second + 1:           3,
		18 * time.Second:          19,
		30*24*time.Hour - 1e9:     30 * 24 * 3600,
		30*24*time.Hour - 1e9 + 1: 1_700_000_001 + 30*24*3600 + 1,
		365 * 24 * time.Hour:      1_700_000_001 + 365*24*3600 + 1,
		70 * 365 * 24 * time.Hour: math.MaxInt32,
	} {
		if got := expiration(now, life); got != want {
			t.Errorf("%v: %d, want %d", life, got, want)
		}
	}
	for _, late := range []int64{math.MaxInt32 - 86400, math.MaxInt32 + 86400} {
		if got := expiration(time.Unix(late, 0), 400*24*time.Hour); got != longestRelative {
			t.Errorf("in 2038: %d, want %d", got, longestRelative)
		}
	}
}

func TestServersShareTheNames(t *testing.T) {
	const names = 30_000
	of := func(text ...string) servers {
		var addrs []addr
		for _, s := range text {
			addrs = append(addrs, addr{"tcp", s})
		}
		return newServers(addrs, 1)
	}
	two, three, mixed := of("a:1", "b:1"), of("a:1", "b:1", "c:1"), of("c:1", "a:1", "b:1")
	found, moved := map[string]int{}, 0
	for i := range names {
		name := fmt.Sprintf("weir:1:{user:%d}::100/1m", i)
		at := three.of(name).text
		found[at]++
		if was := two.of(name).text; was != at {
			moved++
			if at != "c:1" {
				t.Fatalf("%s moved from %s to %s", name, was, at)
			}
		}
		if other := mixed.of(name).text; other != at {
			t.Fatalf("%s is on %s or on %s: that depends on the order", name, at, other)
		}
	}
	for server, n := range found {
		if n < names/3*9/10 || n > names/3*11/10 {
			t.Errorf("%s has %d of %d names", server, n, names)
		}
	}
	if moved != found["c:1"] || len(found) != 3 {
		t.Errorf("%d names moved, %v", moved, found)
	}
}
