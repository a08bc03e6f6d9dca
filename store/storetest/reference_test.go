package storetest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// A shelf is an engine that keeps states in memory, in microseconds. Its stores are right but for their faults.
type shelf struct {
	mu     sync.Mutex
	cells  map[string]cell
	away   bool
	faults faults
}

// A cell is what is kept under a name.
type cell struct {
	head  string // of accounts
	state []int64
}

// faults are ways to be wrong, each a hook that is nil in a store that is right.
type faults struct {
	spec     func(store.Spec) store.Spec // what is bound instead
	name     func(spec store.Spec, key string) string
	op       func(b *shelfBinding, op algorithm.Op) algorithm.Op // what is done instead
	apply    result                                              // of plain accounts
	account  changed                                             // of all
	verdict  func(b *shelfBinding, v algorithm.Verdict) algorithm.Verdict
	now      func(us int64) int64
	stamp    func(us int64) int64
	unlocked func(b *shelfBinding, op algorithm.Op) bool // loads, and stores later
	trusts   func(told bool) bool
	late     bool // looks at the context when all is done
	bindErr  func(error) error
	batch    func([]store.KeyCost)
	joint    func(s *shelfStore, parts []store.Part, now int64) []algorithm.Verdict
	at       func(us int64) int64 // of a joint decision
	inspect  func(state []int64, at int64) ([]int64, int64)
	reset    func(s *shelf, b *shelfBinding, key string)
	shared   bool // by stores that race, of which each does one thing at a time
	aliases  bool // keeps the memory of keys
	unnamed  bool // reserves without a name
}

func newShelf(f faults) *shelf { return &shelf{cells: map[string]cell{}, faults: f} }

func (s *shelf) open(o Options) store.Store { return &shelfStore{shelf: s, trusts: o.TrustClientTime} }

type shelfStore struct {
	*shelf
	trusts bool
	turn   sync.Mutex // of shared stores
}

type shelfBinding struct {
	store   *shelfStore
	spec    store.Spec
	program *algorithm.Program
}

func (s *shelfStore) Bind(spec store.Spec) (store.Binding, error) {
	if f := s.faults.spec; f != nil {
		spec = f(spec)
	}
	program, err := store.CompileMicroseconds(spec)
	if err != nil {
		if f := s.faults.bindErr; f != nil {
			err = f(err)
		}
		return nil, err
	}
	return &shelfBinding{store: s, spec: spec, program: program}, nil
}

func (s *shelfStore) TrustsClientTime() bool {
	if f := s.faults.trusts; f != nil {
		return f(s.trusts)
	}
	return s.trusts
}

func (b *shelfBinding) name(key string) string {
	if f := b.store.faults.name; f != nil {
		return f(b.spec, key)
	}
	if b.store.faults.aliases {
		return key
	}
	names, err := store.NewNames("", b.spec)
	if err != nil {
		panic(err)
	}
	return names.Name(strings.Clone(key))
}

// time returns the time of an operation in microseconds.
func (b *shelfBinding) time(now int64) (int64, error) {
	switch {
	case now == store.OwnClock:
		us := time.Now().UnixMicro()
		if f := b.store.faults.now; f != nil {
			us = f(us)
		}
		return us, nil
	case !b.store.TrustsClientTime():
		return 0, store.ErrClientTime
	}
	return store.Microseconds(now), nil
}

func (b *shelfBinding) Do(ctx context.Context, key string, op algorithm.Op, now int64) (algorithm.Verdict, error) {
	v, _, err := b.DoStamped(ctx, key, op, now)
	return v, err
}

var errAway = errors.New("the engine is away")

func (b *shelfBinding) DoStamped(ctx context.Context, key string, op algorithm.Op, now int64) (v algorithm.Verdict, at int64, err error) {
	f := &b.store.faults
	if !f.late && ctx.Err() != nil {
		return v, 0, ctx.Err()
	}
	s := b.store.shelf
	if f.shared {
		b.store.turn.Lock()
		defer b.store.turn.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return v, 0, errAway
	}
	if at, err = b.time(now); err != nil {
		return v, 0, err
	}
	if op.Kind >= algorithm.Reserve && !b.spec.Accounts() && !f.unnamed {
		return v, 0, store.ErrUnnamed
	}
	op.End, op.Life = store.Microseconds(op.End), store.Microseconds(op.Life+999)
	if f.reset != nil && op.Kind == algorithm.Reset {
		f.reset(s, b, key)
	}
	v = b.apply(b.name(key), op, at)
	if f.stamp != nil {
		at = f.stamp(at)
	}
	return v, at * 1000, ctx.Err()
}

// apply carries out an operation. The caller holds the mutex.
func (b *shelfBinding) apply(name string, op algorithm.Op, at int64) algorithm.Verdict {
	s, f := b.store.shelf, &b.store.faults
	if f.op != nil {
		op = f.op(b, op)
	}
	a := b.account(s.cells[name])
	var r algorithm.Result
	switch {
	case f.account != nil:
		a, r = f.account(b, name, a, op, at)
	case f.apply != nil && a.Plain(b.program) && op.Kind < algorithm.Reserve:
		a.State, r = f.apply(b, name, a.State, op, at)
		a = b.account(cell{state: a.State})
	default:
		a, r = a.Apply(b.program, op, at)
	}
	if f.unlocked != nil && f.unlocked(b, op) {
		s.mu.Unlock()
		runtime.Gosched()
		time.Sleep(time.Microsecond)
		s.mu.Lock()
	}
	s.cells[name] = cell{a.Head(), a.State}
	v := r.Verdict()
	if f.verdict != nil {
		v = f.verdict(b, v)
	}
	return v
}

// account reads a cell, of which the account is a copy.
func (b *shelfBinding) account(c cell) algorithm.Account {
	switch state := slices.Clone(c.state); {
	case b.spec.Accounts() && c.head != "" && c.head != b.program.Head():
		a, err := algorithm.ReadHead(b.program, c.head, state)
		if err != nil {
			panic(err)
		}
		return a
	case len(state) > 0: // of this limit, whatever a fault has made of it
		return algorithm.Account{Program: b.program, State: state}
	}
	return algorithm.Account{}
}

func (b *shelfBinding) TakeMany(ctx context.Context, requests []store.KeyCost, now int64, decisions []algorithm.Decision) ([]algorithm.Decision, error) {
	if f := b.store.faults.batch; f != nil {
		f(requests)
	}
	for _, r := range requests {
		v, err := b.Do(ctx, r.Key, algorithm.Op{Cost: r.Cost}, now)
		if err != nil {
			return decisions, err
		}
		decisions = append(decisions, v.Decision(b.spec.Limit.Capacity()))
	}
	return decisions, nil
}

func (b *shelfBinding) Program() *algorithm.Program { return b.program }

func (b *shelfBinding) Inspect(_ context.Context, key string, now int64) (state []int64, at int64, err error) {
	s := b.store.shelf
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, err = b.time(now); err != nil {
		return nil, 0, err
	}
	state = b.account(s.cells[b.name(key)]).View(b.program, at)
	if f := s.faults.inspect; f != nil {
		state, at = f(state, at)
	}
	return state, at, nil
}

// TakeAll implements store.Joiner.
func (s *shelfStore) TakeAll(_ context.Context, parts []store.Part, now int64, verdicts []store.Outcome) ([]store.Outcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.faults.joint; f != nil {
		return append(verdicts, outcomes(f(s, parts, now))...), nil
	}
	at, err := parts[0].Binding.(*shelfBinding).time(now)
	if err != nil {
		return verdicts, err
	}
	told := at
	if f := s.faults.at; f != nil {
		told = f(at)
	}
	passed := true
	look := make([]algorithm.Verdict, len(parts))
	for i, p := range parts {
		b := p.Binding.(*shelfBinding)
		_, r := b.account(s.cells[b.name(p.Key)]).Apply(b.program, partOp(p), at)
		if r.Allowed {
			_, r = b.account(s.cells[b.name(p.Key)]).Apply(b.program, algorithm.Op{}, at)
		} else {
			passed = false
		}
		look[i] = r.Verdict()
	}
	for i, p := range parts {
		b, v := p.Binding.(*shelfBinding), look[i]
		if passed {
			v = b.apply(b.name(p.Key), partOp(p), at)
		}
		verdicts = append(verdicts, store.Outcome{Verdict: v, At: told * 1000})
	}
	return verdicts, nil
}

// partOp is what takes a part's cost, in microseconds.
func partOp(p store.Part) algorithm.Op {
	if p.ID != 0 {
		return algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: store.Microseconds(p.Life + 999)}
	}
	return algorithm.Op{Cost: p.Cost}
}

func outcomes(verdicts []algorithm.Verdict) []store.Outcome {
	list := make([]store.Outcome, len(verdicts))
	for i, v := range verdicts {
		list[i] = store.Outcome{Verdict: v, At: store.OwnClock}
	}
	return list
}
