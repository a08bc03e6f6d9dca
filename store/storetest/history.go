package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

const (
	clients      = 8
	historyKeys  = 3
	phases       = 6 // of a history; the caller's time goes on between them
	opsPerPhase  = 5 // of each client
	checkTimeout = 30 * time.Second
)

// historyLimits are of every algorithm, with little room.
var historyLimits = []string{
	"12/1s", "7/100ms burst=9", "gcra 12/1s", "leaky-bucket 10/1s", "leaky-queue 9/1s", "cooldown 12/1s", "min-interval 50/1s",
	"refill-bucket 5/1s burst=12", "fixed-window 12/1s", "quota-reset 12/1s", "sliding-log 9/1s", "sliding-window 12/1s",
	"sliding-buckets 12/1s cells=10", "hybrid 12/1s", "exponential 12/1s", "exponential 12/1s strict", "12/day", "concurrent 9 lease=1s",
}

// linearizable records what concurrent clients were told, at times that are theirs, and looks for an order of the operations in
// which the program would have said the same.
func linearizable(k *check) { histories(k, k.rivals(Options{TrustClientTime: true}), someOp, told) }

// linearizableByOwnClock does it by the engine's clock, at the times that a Stamper tells.
func linearizableByOwnClock(k *check) {
	stores := k.rivals(Options{})
	if _, ok := k.bindAll(stores[0], slow)[0].binding.(store.Stamper); !ok {
		k.Skip("the store has no store.Stamper, so the times of its own clock are not known")
	}
	histories(k, stores, someOp, stamped)
}

// refundRaces is the same where most of what is taken is given back at once, so that keys come to nothing while another store takes
// from them: one that removes what it didn't look at has lost what the other took.
func refundRaces(k *check) { histories(k, k.rivals(Options{TrustClientTime: true}), giveAndTake, told) }

// linearizableChanges is the same where half of the clients have another limit under the name, and some reserve.
func linearizableChanges(k *check) {
	pairs := [][2]string{
		{"12/1s", "6/1s"}, {"12/1s", "fixed-window 9/1s"}, {"sliding-log 9/1s", "gcra 5/1s burst=12"}, {"sliding-window 12/1s", "sliding-window 20/1s"},
		{"quota-reset 12/1s", "exponential 8/1s"}, {"12/day", "hybrid 7/1s"}, {"concurrent 9 lease=1s", "concurrent 5 lease=1s"},
		{"sliding-buckets 12/1s cells=10", "refill-bucket 5/1s burst=12"}, {"leaky-queue 9/1s", "cooldown 12/1s"}, {"12/1s", "12/1s"},
	}
	stores := k.rivals(Options{TrustClientTime: true})
	for _, pair := range pairs {
		if k.refused(algorithm.MustParseLimit(pair[0])) == "" && k.refused(algorithm.MustParseLimit(pair[1])) == "" {
			k.checkHistory(record(k.bind(stores[0], pair[0]).bindOn(twice(stores), pair[:]...), anyOp, told))
		}
	}
	stores = k.rivals(Options{})
	first := k.bind(stores[0], pairs[0][0])
	if first == nil {
		return
	}
	if _, ok := first.binding.(store.Stamper); ok {
		k.checkHistory(record(first.bindOn(twice(stores), pairs[0][:]...), anyOp, stamped))
	}
}

// twice returns the stores such that, of two limits in turn, each store has both.
func twice(stores []store.Store) (all []store.Store) {
	for _, s := range stores {
		all = append(all, s, s)
	}
	return all
}

// ask carries out an operation and tells when it took effect.
type ask func(b *bound, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error)

// told asks at the caller's time.
func told(b *bound, key string, op algorithm.Op, now int64) (algorithm.Verdict, int64, error) {
	v, err := b.ask(context.Background(), key, op, now)
	return v, now, err
}

// stamped asks at the store's.
func stamped(b *bound, key string, op algorithm.Op, _ int64) (algorithm.Verdict, int64, error) {
	return b.binding.(store.Stamper).DoStamped(context.Background(), b.tag+key, op, store.OwnClock)
}

// A mix chooses an operation for a client.
type mix func(b *bound, random *rand.Rand, now int64) algorithm.Op

// histories has clients ask under each algorithm. Each uses one of the stores: those of one store may travel together, and then
// never race at the engine.
func histories(k *check, stores []store.Store, choose mix, do ask) {
	random := k.random("names")
	for i := range k.accepted(historyLimits) { // one after the other: it is the clients that are concurrent
		text := historyLimits[i]
		both := []*bound{k.bind(stores[0], text), k.bindUnnamed(stores[0], text)}
		if testing.Short() {
			both = both[random.IntN(2):][:1]
		}
		for _, first := range both {
			k.checkHistory(record(first.bindOn(stores, text), choose, do))
		}
	}
}

// asked is the input of an operation, answer its output.
type asked struct {
	by  *bound
	key string
	op  algorithm.Op // in ticks
}

type answer struct {
	v  algorithm.Verdict
	at int64 // in ticks
}

// record lets clients ask, of limits under one name on several stores, and returns what each was told when. Between phases nobody asks, and the
// caller's time goes on.
func record(same []*bound, choose mix, do ask) (history []porcupine.Operation) {
	began := time.Now()
	var mu sync.Mutex
	phases := phases
	if testing.Short() {
		phases /= 2
	}
	for phase := range phases {
		now := start + int64(phase)*int64(same[0].limit.Period)/4000*1000
		same[0].together(clients, func(client int) {
			b := same[client%len(same)]
			random := b.random(b.limit, phase, client)
			for range opsPerPhase {
				op := choose(b, random, now)
				key := fmt.Sprint("key ", random.IntN(historyKeys))
				call := int64(time.Since(began))
				v, at, err := do(b, key, op, now)
				back := int64(time.Since(began))
				if err != nil {
					b.Fatalf("%v: %s: %v", b.limit, describe(op), err)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{
					ClientId: client, Input: asked{b, key, b.inTicks(op)}, Call: call, Output: answer{v, b.ticks(at)}, Return: back,
				})
				mu.Unlock()
			}
		})
	}
	return history
}

func someOp(b *bound, random *rand.Rand, now int64) algorithm.Op {
	op := algorithm.Op{Cost: 1 + random.Int64N(2)}
	switch n := random.IntN(20); {
	case n == 0:
		op = algorithm.Op{Kind: algorithm.Reset}
	case n < 3:
		op.Kind = algorithm.Refund
	case n < 5:
		op.Kind, op.End = algorithm.Cancel, now+int64(b.limit.Period)*random.Int64N(3)/2000*1000
	case n < 8:
		op.Kind = algorithm.TakeUpTo
	case n < 9:
		op.Cost = 0
	case n < 12 && b.limit.Algorithm == algorithm.Concurrent:
		op.Kind, op.End = algorithm.Renew, now+int64(b.limit.Period)
	}
	return op
}

// anyOp is someOp, or a reservation is made or settled.
func anyOp(b *bound, random *rand.Rand, now int64) algorithm.Op {
	op := algorithm.Op{Kind: algorithm.Reserve, Cost: random.Int64N(4), ID: 1 + random.Int64N(4)}
	switch n := random.IntN(10); {
	case n < 2:
		op.Life = (1 + random.Int64N(4)) * int64(b.limit.Period) / 4000 * 1000
	case n < 4:
		op.Kind, op.Late = algorithm.Commit, n == 2
	default:
		return someOp(b, random, now)
	}
	return op
}

// giveAndTake takes little, and gives back as much as it takes, or all there is.
func giveAndTake(b *bound, random *rand.Rand, _ int64) algorithm.Op {
	switch n := random.IntN(10); {
	case n < 5:
		return algorithm.Op{Cost: 1}
	case n < 9:
		return algorithm.Op{Kind: algorithm.Refund, Cost: 1}
	}
	return algorithm.Op{Kind: algorithm.Refund, Cost: b.limit.Capacity()}
}

// checkHistory looks for an order, key by key.
func (k *check) checkHistory(history []porcupine.Operation) {
	k.Helper()
	spec := porcupine.Model{
		Partition: byKey,
		Init:      func() any { return freshModel() },
		Step: func(state, input, output any) (bool, any) {
			in, out := input.(asked), output.(answer)
			next, _, ok := state.(model).step(in.by.program, in.op, out.at, out.v)
			return ok, next
		},
		Equal: func(x, y any) bool { return x.(model).equal(y.(model)) },
		Hash:  func(x any) uint64 { return x.(model).hash() },
	}
	switch porcupine.CheckOperationsTimeout(spec, history, checkTimeout) {
	case porcupine.Unknown:
		k.Logf("%v: no order was found within %v, and none excluded", history[0].Input.(asked).by.limit, checkTimeout)
	case porcupine.Illegal:
		for _, part := range byKey(history) {
			if porcupine.CheckOperationsTimeout(spec, part, checkTimeout) == porcupine.Illegal {
				k.Fatalf("there is no order of these operations that explains their verdicts:\n%s", showHistory(part))
			}
		}
	}
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, o := range history {
		key := o.Input.(asked).key
		parts[key] = append(parts[key], o)
	}
	all := make([][]porcupine.Operation, 0, len(parts))
	for _, part := range parts {
		all = append(all, part)
	}
	return all
}

func showHistory(part []porcupine.Operation) string {
	slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var text strings.Builder
	for _, o := range part {
		in, out := o.Input.(asked), o.Output.(answer)
		fmt.Fprintf(&text, "\tclient %d, from %v to %v, %v: %s at tick %d: %s\n",
			o.ClientId, time.Duration(o.Call), time.Duration(o.Return), in.by.limit, describe(in.op), out.at, show(out.v))
	}
	return text.String()
}
