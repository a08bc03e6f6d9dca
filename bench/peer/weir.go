package peer

import (
	"context"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store/memory"
)

type weirLimiter struct{ l *weir.Limiter }

func buildWeir(b Budget, opts ...weir.Option) (weirLimiter, error) {
	l, err := weir.New(weir.Limit{Count: b.Count, Period: b.Period}, opts...)
	return weirLimiter{l}, err
}

func newWeir(b Budget) (Limiter, error) { return buildWeir(b) }

// coarse is weir with a clock that is up to half a millisecond late.
func coarse() weir.Option {
	return weir.WithStore(memory.New(memory.Options{ClockResolution: 500 * time.Microsecond}))
}

func newWeirCoarse(b Budget) (Limiter, error) { return buildWeir(b, coarse()) }

// Allow implements Limiter.
func (w weirLimiter) Allow(key string) bool {
	d, err := w.l.Take(context.Background(), key, 1)
	return err == nil && d.Allowed
}

type weirBatch struct{ weirLimiter }

func newWeirBatch(b Budget) (Limiter, error) {
	w, err := buildWeir(b)
	return weirBatch{w}, err
}

func newWeirCoarseBatch(b Budget) (Limiter, error) {
	w, err := buildWeir(b, coarse())
	return weirBatch{w}, err
}

// Batch implements Batcher.
func (w weirBatch) Batch() func(keys []string) int {
	var requests []weir.Request
	var decisions []weir.Decision
	return func(keys []string) int {
		requests = requests[:0]
		for _, k := range keys {
			requests = append(requests, weir.Request{Key: k, Cost: 1})
		}
		var err error
		decisions, err = w.l.TakeMany(context.Background(), requests, decisions[:0])
		if err != nil {
			return 0
		}
		n := 0
		for i := range decisions {
			if decisions[i].Allowed {
				n++
			}
		}
		return n
	}
}
