package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A binding is a limit prepared for the script.
type binding struct {
	store    *Store
	names    store.Names
	program  *algorithm.Program
	machine  machine
	capacity int64
	heals    bool     // with the server's time
	one      []string // the arguments of a linear Take of one unit by the server's clock
}

var verbs = [...]string{"take", "take up to", "refund", "reset", "cancel"}

func verb(k algorithm.Kind) string {
	if int(k) < len(verbs) {
		return verbs[k]
	}
	return verbs[0]
}

// furthest is beyond the end of every take, in microseconds, and exact in the script.
const furthest = 1<<53 - 1

// Do implements [store.Binding].
func (b *binding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.DoStamped(ctx, key, op, now)
	return v, err
}

// DoStamped implements [store.Stamper].
func (b *binding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	given, err := b.store.given(now)
	if err != nil {
		return v, 0, err
	}
	op.End = max(-furthest, min(furthest, store.Microseconds(op.End)))
	heals := b.heals && given == ""
	text, err := b.store.run(ctx, verb(op.Kind), []string{b.names.Name(key)}, b.args(op, given, heals))
	if err != nil {
		return v, 0, err
	}
	r, err := readReply(text)
	if err != nil {
		return v, 0, err
	}
	granted, old := r.next()
	v, err = b.verdict(op, granted, old, r.at, heals)
	return v, r.at * tick, err
}

// args returns the script's arguments for one operation.
func (b *binding) args(op algorithm.Op, given string, heals bool) []string {
	if b.machine.letter == 'l' && op.Kind == algorithm.Take && !peeks(op, b.capacity) {
		if op.Cost == 1 && given == "" {
			return b.one
		}
		return b.machine.kernel.quick(append(make([]string, 0, 9), given), op.Cost, heals)
	}
	return b.part([]string{given, "e", string(b.machine.letter)}, op, heals)
}

// part appends the arguments of one part: the operation, how many there are, and they.
func (b *binding) part(args []string, op algorithm.Op, heals bool) []string {
	first := len(args) + 2
	switch {
	case op.Kind == algorithm.Reset:
		return append(args, "X", "0")
	case peeks(op, b.capacity):
		args = append(args, "P", "")
		op = algorithm.Op{}
	default:
		args = append(args, letters[op.Kind], "")
	}
	args = b.machine.args(args, op, heals)
	args[first-1] = strconv.Itoa(len(args) - first)
	return args
}

// letters are the script's for the operations.
var letters = [...]string{algorithm.Take: "T", algorithm.TakeUpTo: "U", algorithm.Refund: "R", algorithm.Reset: "X", algorithm.Cancel: "C"}

// peeks reports whether an operation changes nothing, whatever the state.
func peeks(op algorithm.Op, capacity int64) bool {
	if op.Kind == algorithm.Reset {
		return false
	}
	return op.Cost == 0 || op.Kind == algorithm.Take && op.Cost > capacity
}

// Program implements [store.Inspector].
func (b *binding) Program() *algorithm.Program { return b.program }

// Inspect implements [store.Inspector].
func (b *binding) Inspect(ctx context.Context, key string, now int64) (state []int64, at int64, err error) {
	given, err := b.store.given(now)
	if err != nil {
		return nil, 0, err
	}
	args := b.part([]string{given, "e", string(b.machine.letter)}, algorithm.Op{}, false)
	args[3] = "I"
	text, err := b.store.run(ctx, "inspect", []string{b.names.Name(key)}, args)
	if err != nil {
		return nil, 0, err
	}
	r, err := readReply(text)
	if err != nil {
		return nil, 0, err
	}
	_, old := r.next()
	if state, err = b.machine.whole(old); err != nil {
		return nil, r.at, err
	}
	if err := b.program.Check(state); err != nil {
		return nil, r.at, fmt.Errorf("redis: %w", err)
	}
	if given == "" && b.heals {
		b.program.Heal(state, r.at)
	}
	return state, r.at, nil
}
