package storetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// batches holds a Batcher to what one request after another gives.
func batches(k *check) {
	s := k.trusting()
	all := k.bindAll(s, limits)
	if _, ok := all[0].binding.(store.Batcher); !ok {
		k.Skip("the store is no store.Batcher")
	}
	k.each(len(all), func(i int) {
		b := all[i]
		same := []*bound{b}
		if b.spec.Accounts() {
			same = append(same, b.another(s, "sliding-window 7/1s"))
		}
		batchesOf(same)
	})
}

// batchesOf asks for batches of a limit, or of several under one name in turn.
func batchesOf(same []*bound) {
	random := same[0].random(same[0].limit, len(same))
	accounts := map[string]algorithm.Account{}
	first := algorithm.Decision{Limit: 77}
	for n, size := range []int{0, 1, 2, 33, 100, 3, 20} {
		b := same[n/2%len(same)]
		batcher, ok := b.binding.(store.Batcher)
		if !ok {
			continue
		}
		now := start + int64(n)*int64(b.limit.Period)/3000*1000
		requests := make([]store.KeyCost, size)
		for i := range requests {
			requests[i] = store.KeyCost{Key: fmt.Sprint(b.tag, "key ", random.IntN(12)), Cost: random.Int64N(4)}
		}
		decisions, err := batcher.TakeMany(context.Background(), slices.Clone(requests), now, []algorithm.Decision{first})
		if err != nil || len(decisions) != size+1 || decisions[0] != first {
			b.Fatalf("%v: %d decisions were appended for a batch of %d, error %v", b.limit, len(decisions)-1, size, err)
		}
		for i, r := range requests {
			account, want := accounts[r.Key].Apply(b.program, algorithm.Op{Cost: r.Cost}, b.ticks(now))
			accounts[r.Key] = account
			if decisions[i+1] != want.Decision {
				b.Fatalf("%v: request %d of a batch of %d, %+v: got %+v, want %+v", b.limit, i, size, r, decisions[i+1], want.Decision)
			}
		}
	}
}
