package redis_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/redis"
)

// A pair is a store's binding and the program beside it, on one key.
type pair struct {
	t       *testing.T
	binding store.Binding
	program *algorithm.Program
	state   []int64
	key     string
}

func newPair(t *testing.T, s *redis.Store, text string) *pair {
	t.Helper()
	b := bind(t, s, t.Name(), text)
	return &pair{t: t, binding: b, program: b.(store.Inspector).Program()}
}

// fresh goes on with another key.
func (p *pair) fresh(key any) {
	p.state, p.key = nil, fmt.Sprint(key)
}

func (p *pair) do(op algorithm.Op, now int64) algorithm.Verdict {
	p.t.Helper()
	send := op
	send.End *= 1000
	got, err := p.binding.Do(context.Background(), p.key, send, now*1000)
	var want algorithm.Result
	p.state, want = p.program.Apply(p.state, op, now)
	if err != nil || got != want.Verdict() {
		p.t.Errorf("%s, key %s, %+v at %d: %+v, %v, want %+v", p.program.Limit(), p.key, op, now, got, err, want.Verdict())
	}
	return got
}

// The two products that sliding-window compares may be one apart where doubles can't tell them: 2^51 units, weighted by a tick more or
// less than what leaves room.
func TestSlidingWindowToTheUnit(t *testing.T) {
	p := newPair(t, open(t, redis.Options{TrustClientTime: true}), "sliding-window 2251799813685248/8760h")
	const width = int64(8760 * 3600 * 1_000_000)
	window := 1_700_000_000_000_000/width*width + width
	w := big.NewInt(width)
	for previous := int64(2251799813685247); previous > 2251799813685247-400; previous -= 2 {
		inverse := new(big.Int).ModInverse(big.NewInt(previous), w)
		if inverse == nil {
			continue
		}
		for sign, above := range []bool{false, true} {
			left := inverse.Int64() // previous·left is one above a multiple of the width
			if !above {
				left = width - left // one below
			}
			product := new(big.Int).Mul(big.NewInt(previous), big.NewInt(left))
			room := new(big.Int).Div(product, w).Int64()
			if !above {
				room++ // it fits by one
			}
			p.fresh(fmt.Sprint(previous, sign))
			p.do(algorithm.Op{Cost: previous}, window)
			cost := p.program.Limit().Count - room
			if v := p.do(algorithm.Op{Cost: cost}, window+width+width-left); cost > 0 && (v.Granted < 0) != above {
				t.Errorf("%d of the last window, %d left: %+v", previous, left, v)
			}
			p.do(algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 1 << 50}, window+width+width-left)
		}
	}
}

// Cells begin at the tick at which they do, also where a product that says so has 60 bits.
func TestCellsToTheTick(t *testing.T) {
	p := newPair(t, open(t, redis.Options{TrustClientTime: true}), "sliding-buckets 10/8761h cells=3581")
	const width, cells = int64(8761 * 3600 * 1_000_000), int64(3581)
	window := 1_700_000_000_000_000 / width * width
	for k := int64(1); k < cells; k++ {
		product := new(big.Int).Mul(big.NewInt(k), big.NewInt(width))
		whole, over := new(big.Int).DivMod(product.Add(product, big.NewInt(cells-1)), big.NewInt(cells), new(big.Int))
		if over.Int64() > 8 && k%50 > 0 { // the tick before is all but in the cell
			continue
		}
		begin := window + whole.Int64()
		for _, now := range []int64{begin - 1, begin} {
			p.fresh(now)
			p.do(algorithm.Op{Cost: 2}, now)
			p.do(algorithm.Op{Cost: 3}, now+1)
			p.do(algorithm.Op{Cost: 7}, now+1)
			if state, _, err := p.binding.(store.Inspector).Inspect(t.Context(), p.key, now*1000); err != nil || state[0] != p.state[0] {
				t.Errorf("at %d: cell %d, want %d, %v", now, state[0], p.state[0], err)
			}
		}
	}
}

// The sums in a list go round at 2^52, and mean the same.
func TestSumsGoRound(t *testing.T) {
	p := newPair(t, open(t, redis.Options{TrustClientTime: true}), "sliding-buckets 2251799813685248/1s cells=4")
	p.fresh("key")
	now := int64(1_700_000_000_000_000)
	for i := range int64(60) {
		v := p.do(algorithm.Op{Kind: algorithm.TakeUpTo, Cost: 1 << 50}, now)
		end := now + v.Reset.Microseconds()
		p.do(algorithm.Op{Cost: 1 << 48}, now+200_000)
		p.do(algorithm.Op{Kind: algorithm.Cancel, Cost: 1<<49 + i, End: end}, now+250_000)
		p.do(algorithm.Op{Kind: algorithm.Refund, Cost: 1<<47 + i}, now+300_000)
		p.do(algorithm.Op{Cost: 1 << 51}, now+300_000)
		now += 350_000 + i
	}
}

// Of a request that is denied, a part that would grant is as a peek finds it, also when its newest cells were emptied; and one that denies,
// and counts denials, counts this one.
func TestDeniedTogether(t *testing.T) {
	s := open(t, redis.Options{TrustClientTime: true})
	p := newPair(t, s, "sliding-buckets 8/8s cells=8")
	p.fresh("key")
	now := int64(1_700_000_000_000_000)
	p.do(algorithm.Op{Cost: 1}, now)
	p.do(algorithm.Op{Cost: 2}, now+3_000_000)
	p.do(algorithm.Op{Kind: algorithm.Refund, Cost: 2}, now+3_000_000)
	peek := p.do(algorithm.Op{}, now+3_000_000)
	strict := part(t, s, t.Name(), "exponential 5/1m strict", "key", 4)
	for i, want := range []int64{4, -1, -1} {
		verdicts, err := s.TakeAll(t.Context(), []store.Part{
			{Binding: p.binding, Limit: p.program.Limit(), Key: "key", Cost: int64(1 + i)}, strict,
		}, (now+3_000_000)*1000, nil)
		if err != nil || verdicts[1].Granted != want {
			t.Fatalf("request %d: %+v, %v", i, verdicts, err)
		}
		if i == 0 { // both were charged
			p.state, _ = p.program.Apply(p.state, algorithm.Op{Cost: 1}, now+3_000_000)
			p.do(algorithm.Op{Kind: algorithm.Refund, Cost: 1}, now+3_000_000)
			continue
		}
		if verdicts[0].Verdict != peek {
			t.Errorf("request %d: %+v, want %+v", i, verdicts[0], peek)
		}
		if rate := peekState(t, strict, now+3_000_000); rate != int64(4+4*i) {
			t.Errorf("request %d: the rate is %d, want %d", i, rate, 4+4*i)
		}
	}
}

// peekState returns the rate of an exponential, in whole units.
func peekState(t *testing.T, p store.Part, now int64) int64 {
	t.Helper()
	state, _, err := p.Binding.(store.Inspector).Inspect(t.Context(), p.Key, now*1000)
	if err != nil || len(state) != 2 {
		t.Fatal(state, err)
	}
	return int64(fromBits(state[1]))
}

func fromBits(word int64) float64 { return math.Float64frombits(uint64(word)) }
