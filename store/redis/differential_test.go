package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// limits are of every algorithm, with and without its options, and with numbers that are hard on the script.
var limits = []string{
	"100/1m", "7/1s burst=3", "1000003/24h", "100000/1s burst=1", "3000000/1s burst=7", "999999937/24h burst=5000", "1/1h",
	"gcra 10/1s burst=20", "leaky-bucket 4/1s", "cooldown 3/1m", "min-interval 7/1s",
	"leaky-queue 4/1s queue=10", "leaky-queue 7/1s queue=3",
	"refill-bucket 50/24h burst=200", "refill-bucket 7/1s burst=3", "fixed-window 10/1s", "fixed-window 1000/1h",
	"quota-reset 10/1s", "sliding-log 3/1m", "sliding-log 50/1s", "sliding-window 10/1s", "sliding-window 1000000007/24h",
	"sliding-window 2251799813685248/240h", "sliding-buckets 100/1m", "sliding-buckets 10/7s cells=3",
	"sliding-buckets 1000/24h cells=3600", "sliding-buckets 5/1s cells=1",
	"hybrid 10/1s", "hybrid 7/10s", "exponential 10/1s", "exponential 5/1h strict", "exponential 1000000/1m",
	"10/day", "7/month tz=Europe/Berlin anchor=31", "1000/week tz=America/Sao_Paulo anchor=4", "5/year tz=Asia/Tokyo anchor=02-29",
	"concurrent 10 lease=30s", "concurrent 3 lease=100ms",
}

// A walk takes random steps on one key of one limit, and holds the store to the program: in every verdict, and in the state it keeps.
type walk struct {
	*rand.Rand
	limit   algorithm.Limit
	store   *redis.Store
	binding store.Binding
	program *algorithm.Program
	now     int64 // µs
	account algorithm.Account
	ends    []int64 // of takes, in µs
}

// step moves the time on, mostly by something like the interval between units, and sometimes back.
func (w *walk) step() {
	period := int64(w.limit.Period / time.Microsecond)
	unit := max(1, period/w.limit.Count)
	switch w.IntN(20) {
	case 0:
		w.now -= w.Int64N(period) + 1
	case 1:
		w.now += w.Int64N(3 * period)
	case 2:
		w.now += period * (w.Int64N(3) + 1)
	case 3, 4:
		w.now += period / (w.Int64N(9) + 1)
	case 5:
		w.now++
	case 6, 7, 8:
	default:
		w.now += w.Int64N(2 * unit)
	}
	if w.now > 3_000_000_000_000_000 {
		w.now = 1_700_000_000_000_000
	}
}

func (w *walk) op() algorithm.Op {
	capacity := w.limit.Capacity()
	cost := w.Int64N(3)
	switch w.IntN(8) {
	case 0:
		cost = w.Int64N(capacity + 2)
	case 1:
		cost = capacity - w.Int64N(min(3, capacity))
	case 2:
		cost = 1
	}
	end := func() int64 {
		if len(w.ends) > 0 && w.IntN(5) > 0 {
			return w.ends[w.IntN(len(w.ends))]
		}
		return w.now + w.Int64N(int64(w.limit.Period/time.Microsecond))
	}
	switch w.IntN(15) {
	case 0, 1:
		return algorithm.Op{Kind: algorithm.TakeUpTo, Cost: cost}
	case 2:
		return algorithm.Op{Kind: algorithm.Refund, Cost: cost}
	case 3, 4:
		return algorithm.Op{Kind: algorithm.Cancel, Cost: cost, End: end()}
	case 5:
		if w.IntN(5) == 0 {
			return algorithm.Op{Kind: algorithm.Reset}
		}
	case 6, 7, 8:
		if w.limit.Algorithm == algorithm.Concurrent || w.IntN(6) == 0 {
			return algorithm.Op{Kind: algorithm.Renew, Cost: cost, End: end()}
		}
	}
	return algorithm.Op{Kind: algorithm.Take, Cost: cost}
}

// took remembers a take, so that it can be undone.
func (w *walk) took(v algorithm.Verdict, at int64) {
	if v.Granted > 0 {
		w.ends = append(w.ends, at+int64(v.Reset/time.Microsecond))
		w.ends = w.ends[max(0, len(w.ends)-8):]
	}
}

func (w *walk) run(ctx context.Context, key string, steps int) error {
	for i := range steps {
		w.step()
		if err := w.follow(ctx, key, w.op()); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		if i%4 > 0 && i < steps-1 {
			continue
		}
		if err := w.kept(ctx, key); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// follow carries out an operation, whose times are in microseconds, and wants the verdict that the account has.
func (w *walk) follow(ctx context.Context, key string, op algorithm.Op) error {
	before := w.account
	before.State = slices.Clone(before.State)
	account, want := w.account.Apply(w.program, op, w.now)
	w.account = account
	send := op
	send.End *= 1000
	send.Life *= 1000
	got, err := w.binding.Do(ctx, key, send, w.now*1000)
	if err != nil || got != want.Verdict() {
		return fmt.Errorf("%v: %+v at %d in %q, %v: %+v, %w, want %+v", w.limit, op, w.now, before.Head(), before.State, got, err, want.Verdict())
	}
	w.took(got, w.now)
	return nil
}

// kept wants the server to have what the account is, and an Inspector to show it.
func (w *walk) kept(ctx context.Context, key string) error {
	kept, _, err := redis.Kept(ctx, w.store, w.binding, key)
	if err != nil || len(kept.State)+len(w.account.State) > 0 && kept.Head() != w.account.Head() || !slices.Equal(kept.State, w.account.State) {
		return fmt.Errorf("at %d is kept %q, %v, %w; want %q, %v", w.now, kept.Head(), kept.State, err, w.account.Head(), w.account.State)
	}
	if !w.account.Plain(w.program) {
		return nil
	}
	state, _, err := w.binding.(store.Inspector).Inspect(ctx, key, w.now*1000)
	if err != nil || !slices.Equal(state, w.account.State) {
		return fmt.Errorf("at %d is shown %v, %w; want %v", w.now, state, err, w.account.State)
	}
	return nil
}

func TestStoreKeepsWhatTheProgramDoes(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true, Timeout: 10 * time.Second})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	steps := 10_000
	if testing.Short() {
		steps = 1000
	}
	const walks = 4 // of each limit, at one time: they share the way to the server
	for _, text := range limits {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			limit := algorithm.MustParseLimit(text)
			specs := []store.Spec{{Limit: limit, Name: t.Name()}, {Limit: limit}}
			if limit.Algorithm.Linear() {
				specs = append(specs, store.Spec{Limit: limit, Name: t.Name(), TimeDebt: true})
			}
			for _, spec := range specs {
				failures := make(chan error, walks)
				for i := range walks {
					b, err := s.Bind(spec)
					if err != nil {
						t.Fatal(err)
					}
					random := rand.New(rand.NewPCG(seed, uint64(i)))
					w := &walk{
						Rand: random, limit: limit, store: s, binding: b, program: b.(store.Inspector).Program(), now: 1_700_000_000_000_000 + random.Int64N(1e9),
					}
					go func() { failures <- w.run(t.Context(), fmt.Sprint(i), steps/walks) }()
				}
				for range walks {
					if err := <-failures; err != nil {
						t.Errorf("%+v: %v", spec, err)
					}
				}
			}
		})
	}
}

// A request that several limits decide gets from each what the program says: of all that grant, if one denies, what a peek finds.
func TestTakeAllIsWhatTheProgramDoes(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	steps := 100
	if testing.Short() {
		steps = 20
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var walks []*walk
	for _, text := range limits {
		if limit := algorithm.MustParseLimit(text); !limit.Strict {
			b := bind(t, s, t.Name(), text)
			walks = append(walks, &walk{Rand: random, limit: limit, store: s, binding: b, program: b.(store.Inspector).Program(), now: 1_700_000_000_000_000})
		}
	}
	for i := range steps * len(walks) {
		w, other := walks[i%len(walks)], walks[random.IntN(len(walks))]
		if w == other {
			continue
		}
		key := fmt.Sprint(i % len(walks))
		otherKey := fmt.Sprint(slices.Index(walks, other))
		if err := w.run(t.Context(), key, 2); err != nil {
			t.Fatalf("%s: %v", w.limit, err)
		}
		other.now = max(w.now, other.now)
		w.now = other.now
		pair, keys := []*walk{w, other}, []string{key, otherKey}
		parts, want, after := make([]store.Part, 2), make([]algorithm.Verdict, 2), make([][]int64, 2)
		passed := true
		for j, w := range pair {
			parts[j] = store.Part{Binding: w.binding, Limit: w.limit, Key: keys[j], Cost: random.Int64N(w.limit.Capacity()/2 + 3)}
			state, r := w.program.Apply(slices.Clone(w.account.State), algorithm.Op{Cost: parts[j].Cost}, w.now)
			after[j], want[j], passed = state, r.Verdict(), passed && r.Allowed
		}
		for j, w := range pair {
			if passed {
				w.account = algorithm.Account{Program: w.program, State: after[j]}
			} else if want[j].Granted >= 0 {
				_, r := w.program.Apply(slices.Clone(w.account.State), algorithm.Op{}, w.now)
				want[j] = r.Verdict()
			}
		}
		got, err := s.TakeAll(t.Context(), parts, w.now*1000, nil)
		if err != nil || !slices.EqualFunc(got, want, func(o store.Outcome, v algorithm.Verdict) bool { return o.Verdict == v }) {
			t.Fatalf("%s and %s, costs %d and %d in %v and %v: %+v, %v, want %+v",
				w.limit, other.limit, parts[0].Cost, parts[1].Cost, w.account.State, other.account.State, got, err, want)
		}
	}
}
