package redis

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/swap"
)

// An engine is a [swap.Engine] on the server of a store. Its fast path is the script.
type engine struct{ *Store }

// Slot implements [swap.Slotter].
func (e engine) Slot(name string) int {
	if !e.cluster {
		return 0
	}
	return slot(name)
}

// Compile implements [swap.Compiler]. It refuses limits beyond the exact numbers of the script.
func (e engine) Compile(spec store.Spec, p *algorithm.Program) (any, error) {
	l := &limit{program: p, machine: newMachine(spec.Limit), accounts: spec.Accounts(), healing: !spec.TimeDebt}
	if l.machine.algorithm == linear {
		l.machine.kernel = newKernel(p)
	}
	if err := l.machine.check(); err != nil {
		return nil, err
	}
	if l.accounts {
		l.head = p.Head() + "|"
	}
	l.machine.windows = p.Windows
	if l.machine.algorithm == linear {
		l.one = l.quick(1, "", l.healing)
	}
	return l, nil
}

// Load implements [swap.Engine].
func (e engine) Load(ctx context.Context, keys []swap.Key) ([]swap.Cell, error) {
	r, err := e.load(ctx, "load", namesOf(keys))
	if err != nil {
		return nil, err
	}
	return e.cells(r, keys)
}

func namesOf(keys []swap.Key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.Name
	}
	return names
}

// cells returns the values of a reply. The token of a cell is the value.
func (e engine) cells(r reply, keys []swap.Key) ([]swap.Cell, error) {
	values, err := r.readValues(len(keys))
	if err != nil {
		return nil, err
	}
	cells := make([]swap.Cell, len(keys))
	for i, k := range keys {
		c := &cells[i]
		c.Token, c.Now = values[i], r.at
		if c.Record, err = compiled(k).record(values[i]); err != nil {
			c.Record, c.Foreign = swap.Record{}, err
		}
	}
	return cells, nil
}

// Swap implements [swap.Engine].
func (e engine) Swap(ctx context.Context, changes []swap.Change) (swapped bool, err error) {
	names, args := make([]string, len(changes)), append(make([]string, 0, 2+3*len(changes)), "", "swap")
	for i, c := range changes {
		value, err := compiled(c.Key).value(c.Next)
		if err != nil {
			return false, err
		}
		names[i] = c.Name
		args = append(args, c.Old.Token.(string), value, milliseconds(c.Life)) //nolint:forcetypeassert // it is Load's
	}
	r, err := e.ask(ctx, "swap", names, args)
	return err == nil && r.rest == "+", err
}

// milliseconds rounds up.
func milliseconds(d time.Duration) string {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 && ms < math.MaxInt64 {
		ms++
	}
	return strconv.FormatInt(ms, 10)
}
