package redis_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// raw returns a client without a store.
func raw(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ask(t testing.TB, c rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	r := c.Do(t.Context(), c.B().Arbitrary(words...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%q: %v", words, err)
	}
	return r
}

func number(t testing.TB, c rueidis.Client, words ...string) int64 {
	t.Helper()
	n, err := ask(t, c, words...).AsInt64()
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return n
}

// census returns the names of all keys that a pattern matches, with their remaining life in milliseconds.
func census(t testing.TB, c rueidis.Client, pattern string) map[string]int64 {
	t.Helper()
	names, err := ask(t, c, "KEYS", pattern).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	lives := map[string]int64{}
	for _, name := range names {
		lives[name] = number(t, c, "PTTL", name)
	}
	return lives
}

// bind returns a binding whose states are accounts, apart from those of other names and of other limits; or if the name is "" one without a name.
func bind(t testing.TB, s *redis.Store, name, text string) store.Binding {
	t.Helper()
	b, err := s.Bind(store.Spec{Name: limiter(name, text), Limit: algorithm.MustParseLimit(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// limiter is the name under which bind has a limit.
func limiter(name, text string) string {
	if name == "" {
		return ""
	}
	return name + "." + strings.ReplaceAll(text, " ", "+")
}

// The server's clock decides, and a state that is further ahead of it than the limit can have brought it, as after the clock stepped
// back, is made full debt and counted (pitfall T4). Here states come from a caller whose clock is ahead.
func TestServersClock(t *testing.T) {
	ctx := context.Background()
	own, trusting := open(t, redis.Options{}), open(t, redis.Options{TrustClientTime: true})
	for _, text := range limits {
		b, ahead := bind(t, own, t.Name(), text), bind(t, trusting, t.Name(), text)
		period := algorithm.MustParseLimit(text).Period
		w := &walk{Rand: rand.New(rand.NewPCG(1, 1)), limit: algorithm.MustParseLimit(text), now: time.Now().UnixMicro()}
		program := b.(store.Inspector).Program()
		healed := int64(0)
		for i := range 300 {
			if i%10 == 0 {
				now := time.Now().Add(time.Duration(w.Int64N(int64(4 * period)))).UnixMicro()
				for range w.IntN(4) {
					now += w.Int64N(period.Microseconds())
					if _, err := ahead.Do(ctx, "key", algorithm.Op{Cost: 1 + w.Int64N(w.limit.Capacity())}, now*1000); err != nil {
						t.Fatal(err)
					}
				}
			}
			state, _, err := ahead.(store.Inspector).Inspect(ctx, "key", 0)
			if err != nil {
				t.Fatal(err)
			}
			before := slices.Clone(state)
			op := w.op()
			send := op
			send.End *= 1000
			counted := own.Counts().Healed
			got, ns, err := b.(store.Stamper).DoStamped(ctx, "key", send, store.OwnClock)
			if err != nil {
				t.Fatalf("%s: %+v in %v: %v", text, op, before, err)
			}
			at := ns / 1000
			peek := op.Cost == 0 && op.Kind != algorithm.Reset || op.Kind == algorithm.Take && op.Cost > w.limit.Capacity() ||
				op.Kind == algorithm.Renew && (w.limit.Algorithm != algorithm.Concurrent || op.Cost > w.limit.Capacity())
			repaired := program.Heal(state, at) && op.Kind != algorithm.Reset // which does not look
			kept := slices.Clone(before)
			after, want := program.Apply(state, op, at)
			if !peek {
				kept = slices.Clone(after)
			}
			other := want
			if program.Fresh(slices.Clone(before), at) { // it may have expired, which a Cancel tells
				_, other = program.Apply(nil, op, at)
			}
			if got != want.Verdict() && got != other.Verdict() {
				t.Fatalf("%s: %+v at %d in %v: %+v, want %+v", text, op, at, before, got, want.Verdict())
			}
			if repaired && !peek {
				healed++
			}
			if delta := own.Counts().Healed - counted; (delta == 1) != (repaired && !peek) {
				t.Fatalf("%s: %+v at %d in %v counts %d as healed", text, op, at, before, delta)
			}
			now, _, err := ahead.(store.Inspector).Inspect(ctx, "key", 0)
			if err != nil || !slices.Equal(now, kept) && !program.Fresh(kept, time.Now().UnixMicro()+1) {
				t.Fatalf("%s: %+v at %d in %v leaves %v, want %v, %v", text, op, at, before, now, kept, err)
			}
			w.took(got, at)
		}
		if healed == 0 {
			t.Errorf("%s: no state was healed", text)
		}
	}
}

func TestClientTimeIsRefused(t *testing.T) {
	s := open(t, redis.Options{})
	if s.TrustsClientTime() || !open(t, redis.Options{TrustClientTime: true}).TrustsClientTime() {
		t.Error("stores don't say whether they trust callers")
	}
	b := bind(t, s, t.Name(), "1/1m")
	if _, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, 0); !errors.Is(err, store.ErrClientTime) {
		t.Error(err)
	}
	if found := census(t, raw(t, server(t).Addr()), "*"+t.Name()+"*"); len(found) > 0 {
		t.Error(found)
	}
}

// Pitfall A11: numbers come out of Lua with all their digits, also in 2050.
func TestA11DigitsOfTime(t *testing.T) {
	name := t.Name() + strconv.FormatInt(time.Now().UnixNano(), 36)
	s := open(t, redis.Options{TrustClientTime: true})
	b := bind(t, s, name, "100000/1s burst=1")
	now := time.Date(2050, 6, 1, 12, 0, 0, 123_457_000, time.UTC).UnixNano()
	for i, want := range []int64{1, -1} { // the second comes 1µs later
		v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, now+int64(i)*1000)
		if err != nil || v.Granted != want {
			t.Errorf("request %d: %+v, %v", i, v, err)
		}
	}
	c := raw(t, server(t).Addr())
	if text := onlyState(t, c, name); text != "100000/1s burst=1|2537697600123467" {
		t.Errorf("the state is %q, want 2537697600123467", text)
	}
	own := bind(t, open(t, redis.Options{}), name+"-own", "1/1h burst=1")
	_, at, err := own.(store.Stamper).DoStamped(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
	if err != nil {
		t.Fatal(err)
	}
	if text, want := onlyState(t, c, name+"-own"), "1/1h|"+strconv.FormatInt(at/1000+3600e6, 10); text != want {
		t.Errorf("the state is %q, want %s", text, want)
	}
}

// onlyState returns what is kept under the one name that belongs to a limiter.
func onlyState(t *testing.T, c rueidis.Client, limiter string) string {
	t.Helper()
	names := census(t, c, "*}:"+limiter+".*")
	if len(names) != 1 {
		t.Fatalf("%s has %d states, want 1: %v", limiter, len(names), names)
	}
	for name := range names {
		text, err := ask(t, c, "GET", name).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return ""
}

// Pitfall A12: windows of less than a second.
func TestA12HalfASecond(t *testing.T) {
	name := t.Name() + strconv.FormatInt(time.Now().UnixNano(), 36)
	trusting, own := open(t, redis.Options{TrustClientTime: true}), open(t, redis.Options{})
	c := raw(t, server(t).Addr())
	for _, text := range []string{"1/500ms", "quota-reset 1/500ms", "sliding-log 1/500ms", "fixed-window 1/500ms"} {
		b := bind(t, trusting, name, text)
		const second = int64(time.Second)
		for _, step := range []struct{ now, granted int64 }{{second, 1}, {second + second/2 - 1000, -1}, {second + second/2, 1}} {
			v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, step.now)
			if err != nil || v.Granted != step.granted {
				t.Errorf("%s at %v: %+v, %v", text, step.now, v, err)
			}
		}
		v, err := bind(t, own, name+"own", text).Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
		if err != nil || v.Granted != 1 || v.Reset <= 0 || v.Reset > time.Second/2 {
			t.Errorf("%s: %+v, %v", text, v, err)
		}
	}
	for key, life := range census(t, c, "*"+name+"own*") {
		if life < 0 || life > 1000 { // -2: it is gone by now
			if life != -2 {
				t.Errorf("%s lives for %d ms", key, life)
			}
		}
	}
}

// Pitfall A14: 10 per 18 s with a burst of 1: what is rounded is never the interval.
func TestA14Rounding(t *testing.T) {
	name := t.Name() + strconv.FormatInt(time.Now().UnixNano(), 36)
	b := bind(t, open(t, redis.Options{TrustClientTime: true}), name, "10/18s burst=1")
	for _, step := range []struct {
		now     time.Duration
		granted int64
	}{{0, 1}, {1100 * time.Millisecond, -1}, {1799999 * time.Microsecond, -1}, {1800 * time.Millisecond, 1}} {
		v, err := b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, int64(time.Hour+step.now))
		if err != nil || v.Granted != step.granted {
			t.Errorf("at %v: %+v, %v", step.now, v, err)
		}
	}
	own := bind(t, open(t, redis.Options{}), name+"-own", "10/18s burst=1")
	_, at, err := own.(store.Stamper).DoStamped(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
	if err != nil {
		t.Fatal(err)
	}
	c, fresh := raw(t, server(t).Addr()), at/1000+1_800_000 // microseconds
	before := serverTime(t, c)
	for key, life := range census(t, c, "*}:"+name+"-own.*") {
		after := serverTime(t, c)
		if after+life*1000 < fresh || before+life*1000 > fresh+2000 {
			t.Errorf("%s is forgotten between %d and %d µs, want it as soon as possible after %d", key, before+life*1000, after+life*1000, fresh)
		}
	}
	onlyState(t, c, name+"-own")
}

// serverTime returns the server's clock in microseconds.
func serverTime(t *testing.T, c rueidis.Client) int64 {
	t.Helper()
	parts, err := ask(t, c, "TIME").AsIntSlice()
	if err != nil {
		t.Fatal(err)
	}
	return parts[0]*1_000_000 + parts[1]
}
