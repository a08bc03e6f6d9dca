package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/weirlimit/weir/algorithm"
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
		b, ok := store.Unwrap(p.Binding).(*binding)
		if !ok {
			return outcomes, errors.New("remote: TakeAll has a part of another store")
		}
		if err := s.check(ctx, now, p.Key); err != nil {
			return outcomes, err
		}
		size += len(p.Key) + len(b.name)
		if p.ID != 0 && !b.accounts {
			return outcomes, store.ErrUnnamed
		}
		alone = alone || b.debt
	}
	if alone || size > mostBytes {
		ctx, cancel := s.breaker.Within(ctx, s.options.Timeout)
		defer cancel()
		return store.TakeInTurn(ctx, parts, now, outcomes)
	}
	made, err := store.Through(ctx, s.circuit, func(ctx context.Context) ([]store.Outcome, error) {
		return s.takeTogether(ctx, parts, now)
	})
	return append(outcomes, made...), err
}

func (s *Store) takeTogether(ctx context.Context, parts []store.Part, now int64) ([]store.Outcome, error) {
	const verb = "WEIR.TAKEALL"
	replies, err := s.do(ctx, s.togetherCommand(verb, parts, now)).ToArray()
	if err == nil && len(replies) != 1+len(parts) {
		err = fmt.Errorf("%d decisions; accepted: %d", len(replies), 1+len(parts))
	}
	if err != nil {
		return nil, s.fail(verb, err)
	}
	all, err := replies[0].AsIntSlice()
	if err != nil {
		return nil, s.fail(verb, err)
	}
	request, err := s.read(all, false, false)
	if err != nil {
		return nil, err
	}
	outcomes := make([]store.Outcome, 0, len(parts))
	for i, p := range parts {
		o, err := s.outcome(p, replies[1+i], request.allowed)
		if err != nil {
			return nil, s.fail(verb, err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

func (s *Store) togetherCommand(verb string, parts []store.Part, now int64) rueidis.Completed {
	c := []string{verb}
	for i, p := range parts {
		b := store.Unwrap(p.Binding).(*binding) // TakeAll has looked
		if i > 0 {
			c = append(c, "AND")
		}
		c = circumstances(append(c, strings.Clone(p.Key), b.text, "COST", decimal(p.Cost)), b.name, store.OwnClock)
		if p.ID != 0 {
			c = reservation(c, algorithm.Reserve, p.ID, p.Life)
		}
	}
	return s.command(circumstances(append(c, "NS", "TIME"), "", now)...)
}

// outcome reads what became of a part of a request that passed or did not.
func (s *Store) outcome(p store.Part, message rueidis.RedisMessage, passed bool) (o store.Outcome, err error) {
	values, err := message.ToArray()
	if err != nil {
		return o, err
	}
	fields := make([]int64, len(values))
	for i, value := range values {
		if i == len(values)-1 && value.IsNil() { // the server's store does not tell the time
			fields[i] = store.OwnClock
		} else if fields[i], err = value.AsInt64(); err != nil {
			return o, err
		}
	}
	r, err := s.read(fields, p.ID != 0, true)
	if err != nil {
		return o, err
	}
	switch {
	case !passed:
		r.granted = 0
	case p.ID == 0:
		r.granted = p.Cost
	}
	return store.Outcome{Verdict: r.verdict(), At: r.at}, nil
}
