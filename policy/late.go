package policy

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirlimit/weir/algorithm"
)

// TakeLate charges what work cost whose reservation was over before it could be committed: as far as there is room, of each limit that the
// token tells of. It charges that each time it is called: it is for a Commit that failed with [ErrSettled], once. It does its work also when ctx has ended.
func (s *Set) TakeLate(ctx context.Context, text string, cost int64) error {
	t, err := parseToken(text)
	if err != nil {
		return err
	}
	if cost < 0 || cost > MaxCost {
		return &RequestError{"cost", strconv.FormatInt(cost, 10), fmt.Sprintf("0 to %d", MaxCost)}
	}
	var errs []error
	for i := range t.held {
		h := &t.held[i]
		if h.lease {
			continue
		}
		units := h.units
		if h.said {
			units = cost
		}
		_, _, err := s.do(context.WithoutCancel(ctx), h, algorithm.Op{Kind: algorithm.TakeUpTo, Cost: units})
		if err != nil && !h.quiet {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
