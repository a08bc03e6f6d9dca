package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/weirlimit/weir/store"
)

// What TakeAll sends in one command. A server takes commands of 1 MB and 1024 words.
const (
	mostParts = 100
	mostBytes = 500_000
)

// TakeAll implements [store.Joiner]. The server decides all parts together: in one step if its own store does, and else one part after
// the other, without a round trip between them. More than a hundred parts, parts of more than 500 KB, and limits that share debts
// are taken in turn from here.
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	if len(parts) == 0 {
		return outcomes, nil
	}
	size, alone := 0, len(parts) > mostParts
	for _, p := range parts {
		b, ok := p.Binding.(*binding)
		if !ok {
			return outcomes, errors.New("remote: TakeAll has a part of another store")
		}
		if err := s.check(ctx, now, p.Key); err != nil {
			return outcomes, err
		}
		size += len(p.Key) + len(b.name)
		alone = alone || b.debt
	}
	if alone || size > mostBytes {
		return store.TakeInTurn(ctx, parts, now, outcomes)
	}
	return s.takeTogether(ctx, parts, now, outcomes)
}

func (s *Store) takeTogether(ctx context.Context, parts []store.Part, now int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	const verb = "WEIR.TAKEALL"
	c := []string{verb}
	for i, p := range parts {
		b := p.Binding.(*binding) // TakeAll has looked
		if i > 0 {
			c = append(c, "AND")
		}
		c = circumstances(append(c, strings.Clone(p.Key), b.text, "COST", decimal(p.Cost)), b.name, store.OwnClock)
	}
	c = circumstances(append(c, "NS"), "", now)
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	replies, err := s.client.Do(ctx, s.command(c...)).ToArray()
	if err == nil && len(replies) != 1+len(parts) {
		err = fmt.Errorf("%d decisions; accepted: %d", len(replies), 1+len(parts))
	}
	if err != nil {
		return outcomes, s.fail(verb, err)
	}
	first := len(outcomes)
	allowed := false
	for i, message := range replies {
		fields, err := message.AsIntSlice()
		if err != nil {
			return outcomes[:first], s.fail(verb, err)
		}
		r, err := s.read(fields, false, false)
		if err != nil {
			return outcomes[:first], err
		}
		if i == 0 {
			allowed = r.allowed
			continue
		}
		if allowed {
			r.granted = parts[i-1].Cost
		}
		outcomes = append(outcomes, store.Outcome{Verdict: r.verdict(), At: store.OwnClock})
	}
	return outcomes, nil
}
