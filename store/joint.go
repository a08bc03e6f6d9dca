package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/panics"
)

// A Part is one of several limits that one request must pass together: all are charged, or none.
type Part struct {
	Store   Store   // that of the binding
	Binding Binding // of the Limit and Name
	Limit   algorithm.Limit
	Name    string
	Key     string
	Cost    int64
	// ID and Life, if the ID is not 0, make it a Reserve.
	ID, Life int64
}

// An Outcome is what became of a part.
type Outcome struct {
	algorithm.Verdict
	At int64 // when, by the store's clock, in nanoseconds; OwnClock if the store does not tell
}

// End is what gives back what was taken with this outcome, in a Cancel or Renew. It is not known of a store that does not tell
// the time.
func (o Outcome) End() (end int64, known bool) { return o.At + int64(o.Reset), o.At != OwnClock }

// A Joiner is a Store that decides the parts of one request in one step, so that nobody sees some charged and others not.
// Its documentation says for which parts that holds.
type Joiner interface {
	// TakeAll charges every part if each admits its cost, and none if one does not. It appends an outcome for each
	// part: if all passed, as Do's for a Take or Reserve. If not, Granted is −1 for those that denied, and 0 for the others, which are as a
	// peek finds them. All bindings are of this store, and no two parts are of one state.
	TakeAll(ctx context.Context, parts []Part, now int64, outcomes []Outcome) ([]Outcome, error)
}

// TakeAll decides the parts of one request together: all are charged, or none. It returns an outcome for each part, as a Joiner does.
// Parts of one state, which are those of equal store, name, limit and key, are one, of the greatest cost among them. It is an error to give
// two limits for one name and key: they are of one account.
// It takes one step if all are of one store and that is a Joiner, and is else TakeInTurn, in an order that is the same for all callers.
func TakeAll(ctx context.Context, parts []Part, now int64) ([]Outcome, error) {
	var few [4]Part // what is few is on the stack; a Joiner's parts can't be
	var fewPlaces [3][4]int
	distinct := few[:0]
	index := places(fewPlaces[0][:0], len(parts)) // of a part among the distinct
	one := true
	for i := range parts {
		p := &parts[i]
		one = one && same(p.Store, parts[0].Store)
		same := 0
		for same < len(distinct) && !sameState(p, &distinct[same]) {
			same++
		}
		switch {
		case same == len(distinct):
			distinct = append(distinct, *p)
		case distinct[same].Limit != p.Limit:
			return nil, fmt.Errorf("weir: the limits %v and %v are both %q, for the same key; %w; %w",
				distinct[same].Limit, p.Limit, p.Name, errTwoLimits, ErrNothingDone)
		}
		distinct[same].Cost = max(distinct[same].Cost, p.Cost)
		index[i] = same
	}
	order := places(fewPlaces[1][:0], len(distinct))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return compare(&distinct[i], &distinct[j]) })
	sorted, at := make([]Part, len(distinct)), places(fewPlaces[2][:0], len(distinct))
	inOrder := len(distinct) == len(parts)
	for to, from := range order {
		sorted[to], at[from] = distinct[from], to
		inOrder = inOrder && to == from
	}
	found := make([]Outcome, 0, len(sorted))
	var err error
	if joiner := joinerOf(parts, one); joiner != nil {
		found, err = joiner.TakeAll(ctx, sorted, now, found)
	} else {
		found, err = TakeInTurn(ctx, sorted, now, found)
	}
	if err != nil {
		return nil, err
	}
	if inOrder {
		return found, nil
	}
	outcomes := make([]Outcome, len(parts))
	for i := range parts {
		outcomes[i] = found[at[index[i]]]
	}
	return outcomes, nil
}

// places returns n places, in the memory that it is given if there is enough.
func places(memory []int, n int) []int { return append(memory, make([]int, n)...) }

// joinerOf returns the store of all parts if they have one and it is a Joiner, or nil.
func joinerOf(parts []Part, one bool) Joiner {
	if !one || len(parts) == 0 {
		return nil
	}
	joiner, _ := parts[0].Store.(Joiner)
	return joiner
}

func compare(p, q *Part) int {
	if c := cmp.Or(cmp.Compare(p.Key, q.Key), cmp.Compare(p.Name, q.Name)); c != 0 || p.Limit == q.Limit {
		return c
	}
	return cmp.Compare(p.Limit.String(), q.Limit.String())
}

// sameState reports whether parts are of one state: of one limit, or of one name.
func sameState(p, q *Part) bool {
	return p.Key == q.Key && p.Name == q.Name && (p.Name != "" || p.Limit == q.Limit) && same(p.Store, q.Store)
}

// same reports whether two stores are one. Those that can't be compared are not.
func same(a, b Store) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}

// op is what takes the part's cost.
func (p Part) op() algorithm.Op {
	if p.ID != 0 {
		return algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: p.Life}
	}
	return algorithm.Op{Kind: algorithm.Take, Cost: p.Cost}
}

// TakeInTurn does what a Joiner does with the means of any binding. It looks whether all parts would pass, then takes from
// one after the other, and when one denies all the same, because somebody came between, gives back what those before it were charged.
// Until then others see those charged, and may be denied although in the end nobody passes; never does anyone
// pass who should not. That is rarer when all callers have one order of parts.
// What can't be given back, because the store fails, stays charged; the error then says so.
// If stores have a [Breaker], all steps together have the longest of their timeouts. Units that are not given back by then
// are given back in the background.
func TakeInTurn(ctx context.Context, parts []Part, now int64, outcomes []Outcome) ([]Outcome, error) {
	first := len(outcomes)
	ctx, end, cancel := within(ctx, parts)
	defer cancel()
	if len(parts) > 1 { // a request that is denied should leave no trace, such as a window that it began
		looked, pass, err := lookAll(ctx, parts, now, outcomes)
		if err != nil || !pass {
			return looked, err
		}
	}
	taken := make([]Taken, 0, len(parts))
	for _, p := range parts {
		t, err := p.Take(ctx, now)
		if err != nil {
			_, e := giveBackBy(ctx, end, taken, now, nil)
			return outcomes[:first], halfway(len(taken), errors.Join(err, e))
		}
		if t.Granted < 0 {
			return undo(ctx, end, parts, append(taken, t), now, outcomes)
		}
		taken = append(taken, t)
	}
	for _, t := range taken {
		outcomes = append(outcomes, t.Outcome)
	}
	return outcomes, nil
}

// undo gives back what was taken before the last, which was denied, and returns what then stands for all parts.
func undo(ctx context.Context, end time.Time, parts []Part, taken []Taken, now int64, outcomes []Outcome) ([]Outcome, error) {
	first, last := len(outcomes), len(taken)-1
	outcomes, err := giveBackBy(ctx, end, taken[:last], now, outcomes)
	if err == nil {
		outcomes, _, err = lookAll(ctx, parts[len(taken):], now, append(outcomes, taken[last].Outcome))
	}
	if err != nil {
		return outcomes[:first], halfway(last, err)
	}
	return outcomes, nil
}

// halfway is the error of a request of which some parts were charged.
func halfway(charged int, err error) error {
	if charged == 0 {
		return err
	}
	return &halfwayError{charged, err}
}

type halfwayError struct {
	charged int
	err     error
}

func (e *halfwayError) Error() string {
	return fmt.Sprintf("weir: when another limit failed, the first %d had been charged; they were given it back as far as that can be done: %v",
		e.charged, e.err)
}

// Is and As find what is in the error of the part that failed, but not that nothing was done: that is true of the part alone.
func (e *halfwayError) Is(target error) bool {
	return target != ErrNothingDone && errors.Is(e.err, target)
}

func (e *halfwayError) As(target any) bool { return errors.As(e.err, target) }

// within bounds a context by the longest timeout of the stores that have a breaker. end is the end of that time, or zero.
func within(ctx context.Context, parts []Part) (_ context.Context, end time.Time, cancel context.CancelFunc) {
	var longest *Breaker
	for _, p := range parts {
		if g, ok := p.Store.(Guarded); ok && len(parts) > 1 && (longest == nil || g.Breaker().Timeout() > longest.Timeout()) {
			longest = g.Breaker()
		}
	}
	if longest == nil {
		return ctx, end, func() {}
	}
	end = time.Now().Add(longest.Timeout())
	ctx, cancel = context.WithDeadlineCause(ctx, end, longest.timeout)
	return ctx, end, cancel
}

// giveBackBy is giveBackAll that returns at end, unless that is zero, and then goes on in the background.
func giveBackBy(ctx context.Context, end time.Time, taken []Taken, now int64, outcomes []Outcome) ([]Outcome, error) {
	if end.IsZero() || len(taken) == 0 {
		return giveBackAll(ctx, taken, now, outcomes)
	}
	taken = slices.Clone(taken)
	for i := range taken { // the caller may use the memory of its keys again
		taken[i].Key = strings.Clone(taken[i].Key)
	}
	var given []Outcome
	done := make(chan error, 1)
	go func() {
		done <- panics.Background("store: give back", func() (err error) {
			given, err = giveBackAll(ctx, taken, now, nil)
			return err
		})
	}()
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	select {
	case err := <-done:
		panics.Raise(err)
		return append(outcomes, given...), err
	case <-timer.C:
		return outcomes, fmt.Errorf("weir: giving back %d limits goes on: %w", len(taken), context.DeadlineExceeded)
	}
}

// giveBackAll goes on when one fails.
func giveBackAll(ctx context.Context, taken []Taken, now int64, outcomes []Outcome) (_ []Outcome, err error) {
	for _, t := range taken {
		v, e := t.GiveBack(ctx, now)
		outcomes, err = append(outcomes, Outcome{v, t.At}), errors.Join(err, e)
	}
	return outcomes, err
}

// lookAll appends what stands for each part, and reports whether all would pass.
func lookAll(ctx context.Context, parts []Part, now int64, outcomes []Outcome) (_ []Outcome, pass bool, err error) {
	first := len(outcomes)
	pass = true
	for _, p := range parts {
		v, err := p.look(ctx, now)
		if err != nil {
			return outcomes[:first], false, err
		}
		outcomes, pass = append(outcomes, Outcome{v, now}), pass && v.Granted >= 0
	}
	return outcomes, pass, nil
}

// look returns the verdict on a part that is not to be charged: a peek's if it would pass, else its denial.
func (p Part) look(ctx context.Context, now int64) (algorithm.Verdict, error) {
	v, err := p.Binding.Do(ctx, p.Key, algorithm.Op{}, now)
	needs := p.Cost
	if p.ID != 0 {
		needs = max(1, needs) // a key that owes has no room for a reservation of nothing
	}
	if err != nil || v.Remaining >= needs {
		return v, err
	}
	t, err := p.Take(ctx, now) // it is denied, and says when to come back; else somebody made room just now
	if err != nil || t.Granted < 0 {
		return t.Verdict, err
	}
	return t.GiveBack(ctx, now)
}

// Taken is a Take that can be undone.
type Taken struct {
	Part
	Outcome
	asked time.Time // by this process's clock, when it was asked for or before
}

// Take takes the part's cost in a way that can be undone.
func (p Part) Take(ctx context.Context, now int64) (t Taken, err error) {
	t = Taken{Part: p, asked: time.Now()}
	t.Outcome, err = p.stamped(ctx, p.op(), now)
	return t, err
}

// Renew takes the cost anew, at now, in place of what was taken, which is of a concurrent limit. It is denied if the lease was over and there
// is no room for another.
func (t Taken) Renew(ctx context.Context, now int64) (Taken, error) {
	end, known := t.End()
	if !known {
		return t, errors.New("weir: the store does not tell the time, by which leases are known; accepted: a store that does, or WithClock")
	}
	renewed := Taken{Part: t.Part, asked: time.Now()}
	var err error
	renewed.Outcome, err = t.stamped(ctx, algorithm.Op{Kind: algorithm.Renew, Cost: t.Cost, End: end}, now)
	return renewed, err
}

// stamped carries out an operation, and says when, if the store tells.
func (p Part) stamped(ctx context.Context, op algorithm.Op, now int64) (o Outcome, err error) {
	o.At = now
	if clock, told := p.Binding.(Clock); told && now == OwnClock {
		o.At = clock.Now()
	}
	if stamper, ok := p.Binding.(Stamper); ok && o.At == OwnClock {
		o.Verdict, o.At, err = stamper.DoStamped(ctx, p.Key, op, now)
		return o, err
	}
	o.Verdict, err = p.Binding.Do(ctx, p.Key, op, o.At)
	return o, err
}

// GiveBack undoes the Take, at now, as far as the limit still holds its units (see [algorithm.Limit.Outstanding]), and
// returns what stands then. Of a Take that was denied there is nothing to undo. It does its work also when ctx has ended.
func (t Taken) GiveBack(ctx context.Context, now int64) (algorithm.Verdict, error) {
	if clock, ok := t.Binding.(Clock); ok && now == OwnClock {
		now = clock.Now()
	}
	v, err := t.Binding.Do(context.WithoutCancel(ctx), t.Key, t.back(now), now)
	if err != nil && t.Granted > 0 {
		err = fmt.Errorf("weir: giving back %d units of %v: %w", t.Granted, t.Limit, err)
	}
	v.Granted = 0
	return v, err
}

// back is what undoes the Take at now.
func (t Taken) back(now int64) algorithm.Op {
	if t.ID != 0 {
		return algorithm.Op{Kind: algorithm.Commit, ID: t.ID}
	}
	elapsed := time.Since(t.asked)
	if now != OwnClock && t.At != OwnClock {
		elapsed = time.Duration(now - t.At)
	}
	back := t.Limit.Outstanding(max(0, t.Granted), t.Decision(t.Limit.Capacity()), elapsed)
	if back <= 0 {
		return algorithm.Op{} // a peek
	}
	end, known := t.End()
	if elapsed == 0 || !known {
		return algorithm.Op{Kind: algorithm.Refund, Cost: back} // nothing has come back in no time
	}
	return algorithm.Op{Kind: algorithm.Cancel, Cost: back, End: end}
}
