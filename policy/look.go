package policy

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// lookAll returns what would become of each part by itself, and changes nothing.
func lookAll(ctx context.Context, parts []store.Part, now int64) ([]store.Outcome, error) {
	outcomes := make([]store.Outcome, len(parts))
	for i, p := range parts {
		v, err := look(ctx, p, now)
		if err != nil {
			return nil, err
		}
		outcomes[i] = store.Outcome{Verdict: v, At: now}
	}
	return outcomes, nil
}

// look returns a peek's verdict if the part would pass, and else that of its denial. Of a store that can't be inspected, and of a key that owes, the
// wait is the time until the key is fresh: it passes then at the latest.
func look(ctx context.Context, p store.Part, now int64) (algorithm.Verdict, error) {
	v, err := p.Binding.Do(ctx, p.Key, algorithm.Op{}, now)
	if err != nil || v.Remaining >= p.Cost {
		return v, err
	}
	wait := v.Reset
	if p.Cost > p.Limit.Capacity() {
		wait = algorithm.Never
	} else if inspector, ok := p.Binding.(store.Inspector); ok {
		state, at, err := inspector.Inspect(ctx, p.Key, now)
		if err != nil {
			return v, err
		}
		_, r := inspector.Program().Apply(slices.Clone(state), algorithm.Op{Cost: p.Cost}, at)
		if !r.Allowed {
			wait = r.RetryAfter
		}
	}
	v.Granted, v.Wait = -1, wait
	return v, nil
}
