package weir

import (
	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

func bind(s store.Store, limit Limit, name string, on store.OnError) (*store.Bound, error) {
	if err := limit.Validate(); err != nil {
		return nil, err
	}
	return store.Bind(s, store.Spec{Limit: limit, Name: name}, on)
}

// decision derives what people read, unless err is set.
func decision(b *store.Bound, v algorithm.Verdict, err error) (Decision, error) {
	if err != nil {
		return Decision{}, err
	}
	return b.Decision(v), nil
}

// An unnamedError is that of a SetLimit of a limiter without a name.
type unnamedError struct{}

// Error implements error.
func (unnamedError) Error() string {
	return "weir: the limit of a limiter without a name is the name of its states; accepted: a limiter that has one (WithName), for its limit to change"
}

// Is says that it is an ErrUnnamed.
func (unnamedError) Is(target error) bool { return target == ErrUnnamed }

// SetLimit changes the limit of a limiter that has a name (else the error is [ErrUnnamed]), for all that is asked from now on. What was used stays
// used, in units, at most the new capacity: a raise is there at once, and nobody begins anew. If the limit makes no sense, which is
// a [*LimitError], or the store can't keep it, or it has no share for [WithOnStoreError], nothing changes. It asks no engine.
//
// It is the limit of this Limiter alone. Others of the name, here or in other processes, keep theirs until they are told, and find
// what this one admits (see docs/algorithms.md).
//
// Those who Wait ask again at once, first in, first out: after a raise they may pass earlier. After a change that makes it certain that a
// wait would outlast its deadline, or a cost above the capacity, Wait returns at once. Slots of a leaky-queue for which requests Wait come earlier if the
// next limit has a faster rate (Count per Period, of any algorithm but concurrent), and then follow each other at that; else they stay as they are. Who comes to Wait meanwhile, under
// any limit but a concurrent one, starts after them. Take goes by the store alone: a Delay that it has returned can't change, and it may return one by which the
// request starts sooner after a slot whose time has changed than any of the limits lets it. Reservations and holds made before are settled as ever; a lease that is renewed is one of the limit under which it was taken.
func (l *Limiter) SetLimit(limit Limit) error {
	old := l.Bound()
	switch {
	case old == nil:
		return errNoLimit
	case old.Name == "":
		return unnamedError{}
	}
	b, err := bind(old.Store, limit, old.Name, old.OnError)
	if err != nil {
		return err
	}
	l.lines.mu.Lock()
	defer l.lines.mu.Unlock()
	if b.Limit == l.Limit() {
		return nil
	}
	l.bound.Store(b)
	l.lines.changed = true
	for _, n := range l.lines.byKey {
		n.hasten(b)
		n.changed()
	}
	return nil
}
