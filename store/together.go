package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// A Part is one of several limits that one request must pass together: all are charged, or none.
type Part struct {
	Binding Binding
	Limit   algorithm.Limit // that of the binding
	Key     string
	Cost    int64
}

// A Joiner is a Store that decides the parts of one request in one step, so that nobody sees some charged and others not.
// Its documentation says for which parts that holds.
type Joiner interface {
	// TakeAll charges every part if each admits its cost, and none if one does not. It appends a verdict for each
	// part: if all passed, as Do's for a Take. If not, Granted is −1 for those that denied, and 0 for the others, which are as a
	// peek finds them. All bindings are of this store, and no two parts are of one state.
	TakeAll(ctx context.Context, parts []Part, now int64, verdicts []algorithm.Verdict) ([]algorithm.Verdict, error)
}

// TakeInTurn does what a Joiner does with the means of any binding. It looks whether all parts would pass, then takes from
// one after the other, and when one denies all the same, because somebody came between, gives back what those before it were charged.
// Until then others see those charged, and may be denied although in the end nobody passes; never does anyone
// pass who should not. That is rarer when all callers have one order of parts.
// What can't be given back, because the store fails, stays charged; the error then says so.
func TakeInTurn(ctx context.Context, parts []Part, now int64, verdicts []algorithm.Verdict) ([]algorithm.Verdict, error) {
	first := len(verdicts)
	if len(parts) > 1 { // a request that is denied should leave no trace, such as a window that it began
		looked, pass, err := lookAll(ctx, parts, now, verdicts)
		if err != nil || !pass {
			return looked, err
		}
	}
	taken := make([]Taken, 0, len(parts))
	for _, p := range parts {
		t, err := p.Take(ctx, now)
		if err != nil {
			_, e := giveBackAll(ctx, taken, now, nil)
			return verdicts[:first], halfway(len(taken), errors.Join(err, e))
		}
		if t.Verdict.Granted < 0 {
			return undo(ctx, parts, append(taken, t), now, verdicts)
		}
		taken = append(taken, t)
	}
	for _, t := range taken {
		verdicts = append(verdicts, t.Verdict)
	}
	return verdicts, nil
}

// undo gives back what was taken before the last, which was denied, and returns what then stands for all parts.
func undo(ctx context.Context, parts []Part, taken []Taken, now int64, verdicts []algorithm.Verdict) ([]algorithm.Verdict, error) {
	first, last := len(verdicts), len(taken)-1
	verdicts, err := giveBackAll(ctx, taken[:last], now, verdicts)
	if err == nil {
		verdicts, _, err = lookAll(ctx, parts[len(taken):], now, append(verdicts, taken[last].Verdict))
	}
	if err != nil {
		return verdicts[:first], halfway(last, err)
	}
	return verdicts, nil
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
	return target != ErrNothingDone && errors.Is(e.err, target) //nolint:errorlint // this very one
}

func (e *halfwayError) As(target any) bool { return errors.As(e.err, target) }

// giveBackAll goes on when one fails.
func giveBackAll(ctx context.Context, taken []Taken, now int64, verdicts []algorithm.Verdict) (_ []algorithm.Verdict, err error) {
	for _, t := range taken {
		v, e := t.GiveBack(ctx, now)
		verdicts, err = append(verdicts, v), errors.Join(err, e)
	}
	return verdicts, err
}

// lookAll appends what stands for each part, and reports whether all would pass.
func lookAll(ctx context.Context, parts []Part, now int64, verdicts []algorithm.Verdict) (_ []algorithm.Verdict, pass bool, err error) {
	first := len(verdicts)
	pass = true
	for _, p := range parts {
		v, err := p.look(ctx, now)
		if err != nil {
			return verdicts[:first], false, err
		}
		verdicts, pass = append(verdicts, v), pass && v.Granted >= 0
	}
	return verdicts, pass, nil
}

// look returns the verdict on a part that is not to be charged: a peek's if it would pass, else its denial.
func (p Part) look(ctx context.Context, now int64) (algorithm.Verdict, error) {
	v, err := p.Binding.Do(ctx, p.Key, algorithm.Op{}, now)
	if err != nil || v.Remaining >= p.Cost {
		return v, err
	}
	t, err := p.Take(ctx, now) // it is denied, and says when to come back; else somebody made room just now
	if err != nil || t.Verdict.Granted < 0 {
		return t.Verdict, err
	}
	return t.GiveBack(ctx, now)
}

// Taken is a Take that can be undone.
type Taken struct {
	Part
	Verdict algorithm.Verdict
	at      int64     // of the Take by the store's clock, or OwnClock if the store does not tell
	asked   time.Time // the same by this process's, or before
}

// Take takes the part's cost in a way that can be undone.
func (p Part) Take(ctx context.Context, now int64) (t Taken, err error) {
	t = Taken{Part: p, at: now, asked: time.Now()}
	op := algorithm.Op{Kind: algorithm.Take, Cost: p.Cost}
	clock, told := p.Binding.(Clock)
	if told && now == OwnClock {
		t.at = clock.Now()
	}
	if stamper, ok := p.Binding.(Stamper); ok && t.at == OwnClock {
		t.Verdict, t.at, err = stamper.DoStamped(ctx, p.Key, op, now)
		return t, err
	}
	t.Verdict, err = p.Binding.Do(ctx, p.Key, op, t.at)
	return t, err
}

// End returns the time, by the store's clock, at which the key would be fresh after the Take. It is not known of a store that
// is neither a Clock nor a Stamper.
func (t Taken) End() (end int64, known bool) {
	return t.at + int64(t.Verdict.Reset), t.at != OwnClock
}

// GiveBack undoes the Take, at now, as far as the limit still holds its units (see [algorithm.Limit.Outstanding]), and
// returns what stands then. Of a Take that was denied there is nothing to undo. It does its work also when ctx has ended.
func (t Taken) GiveBack(ctx context.Context, now int64) (algorithm.Verdict, error) {
	if clock, ok := t.Binding.(Clock); ok && now == OwnClock {
		now = clock.Now()
	}
	elapsed := time.Since(t.asked)
	if now != OwnClock && t.at != OwnClock {
		elapsed = time.Duration(now - t.at)
	}
	op := algorithm.Op{} // a peek
	if back := t.Limit.Outstanding(max(0, t.Verdict.Granted), t.Verdict.Decision(t.Limit.Capacity()), elapsed); back > 0 {
		end, known := t.End()
		op = algorithm.Op{Kind: algorithm.Cancel, Cost: back, End: end}
		if elapsed == 0 || !known {
			op = algorithm.Op{Kind: algorithm.Refund, Cost: back} // nothing has come back in no time
		}
	}
	v, err := t.Binding.Do(context.WithoutCancel(ctx), t.Key, op, now)
	if err != nil && op.Cost > 0 {
		err = fmt.Errorf("weir: giving back %d units of %v under %.100q: %w", op.Cost, t.Limit, t.Key, err)
	}
	v.Granted = 0
	return v, err
}
