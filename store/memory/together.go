package memory

import (
	"context"
	"slices"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
)

// TakeAll implements [store.Joiner]: it is one step, under the locks of the shards of all keys, so that nobody sees some parts charged and others not.
// Parts in one-word states, which are those of linear limits without a name and of shared debts, have no locks: where there
// is one it is [store.TakeInTurn]. So it is for a new key of a full store whose new keys share a budget.
func (s *Store) TakeAll(ctx context.Context, parts []store.Part, given int64, outcomes []store.Outcome) ([]store.Outcome, error) {
	var few [4]jointPart
	j := joint{parts: few[:0]}
	for _, p := range parts {
		b, ok := p.Binding.(*stateBinding)
		if !ok || b.store != s {
			return store.TakeInTurn(ctx, parts, given, outcomes)
		}
		if p.ID != 0 && !b.named {
			return outcomes, store.ErrUnnamed
		}
		fp := b.fingerprint(p.Key)
		j.parts = append(j.parts, jointPart{binding: b, fp: fp, shard: b.table.shard(fp), op: opOf(p)})
	}
	var some [4]*stateShard
	j.shards = j.shardsOf(some[:0])
	for j.lock(s, given); j.lacksRoom() && !j.full; j.lock(s, given) {
		j.unlock()
		j.makeRoom(s.now(given))
	}
	if j.full && s.overflow == Share {
		j.unlock()
		j.giveBackRoom()
		return store.TakeInTurn(ctx, parts, given, outcomes)
	}
	j.settle(s)
	j.giveBackRoom()
	if j.cramped {
		s.reclaim(j.now) // for the next
	}
	for i := range j.parts {
		outcomes = append(outcomes, store.Outcome{Verdict: j.parts[i].verdict, At: j.now})
	}
	return outcomes, nil
}

func opOf(p store.Part) algorithm.Op {
	if p.ID != 0 {
		return algorithm.Op{Kind: algorithm.Reserve, Cost: p.Cost, ID: p.ID, Life: p.Life}
	}
	return algorithm.Op{Cost: p.Cost}
}

// A joint is one request that several limits must pass together.
type joint struct { // the store is not in it, so that it need not be on the heap
	parts   []jointPart
	shards  []*stateShard // of the parts, each once, in the order in which everybody locks them
	now     int64
	full    bool // there is no room for some of the keys
	cramped bool // there was no memory for some of the accounts
}

// A jointPart is a Take or a Reserve, which are carried out together with others.
type jointPart struct {
	binding *stateBinding
	fp      fingerprint
	shard   *stateShard
	op      algorithm.Op

	entry   *entry            // nil of a key that is not there
	lacks   bool              // the key needs room, and has none
	counted bool              // there is room for the key, which was counted
	grown   int64             // bytes counted for the account
	trial   algorithm.Account // what a Reserve would leave
	verdict algorithm.Verdict
	passes  bool
	decided bool // the verdict stands, whatever that of the others
}

func (j *joint) shardsOf(shards []*stateShard) []*stateShard {
	for i := range j.parts {
		h := j.parts[i].shard
		at, found := slices.BinarySearchFunc(shards, h, func(a, b *stateShard) int { return a.number - b.number })
		if !found {
			shards = slices.Insert(shards, at, h)
		}
	}
	return shards
}

// lock locks all shards, tells the time, and finds the entries.
func (j *joint) lock(s *Store, given int64) {
	for _, h := range j.shards {
		h.mu.Lock()
	}
	j.now = s.now(given)
	for i := range j.parts {
		p := &j.parts[i]
		p.entry = p.shard.index[p.fp]
	}
}

// settle decides, and unlocks the shards, also after a panic.
func (j *joint) settle(s *Store) {
	defer j.unlock()
	if j.look(s) {
		j.take()
	} else {
		j.deny()
	}
}

func (j *joint) unlock() {
	for _, h := range j.shards {
		h.mu.Unlock()
	}
}

// lacksRoom reports whether there are keys to be added for which there is no room yet.
func (j *joint) lacksRoom() (lacks bool) {
	for i := range j.parts {
		p := &j.parts[i]
		p.lacks = p.needsRoom() && !p.counted
		lacks = lacks || p.lacks
	}
	return lacks
}

// needsRoom reports whether it is of interest if the store is full: for a peek too.
func (p *jointPart) needsRoom() bool {
	return p.entry == nil && (p.binding.writes(p.op) || isPeek(p.op))
}

// makeRoom counts the keys without room. The shards must not be locked, because it may evict keys.
func (j *joint) makeRoom(now int64) {
	for i := range j.parts {
		p := &j.parts[i]
		if !p.lacks {
			continue
		}
		if p.counted = p.binding.table.makeRoom(p.binding.owner, now); !p.counted {
			j.full = true
			return
		}
	}
}

// giveBackRoom uncounts unused keys and bytes.
func (j *joint) giveBackRoom() {
	for i := range j.parts {
		p := &j.parts[i]
		if p.counted {
			p.binding.table.dropKey(p.binding.owner)
		}
		if p.grown > 0 {
			p.binding.store.room.force(p.binding.owner, -p.grown)
		}
	}
}

// look decides each part as if it were alone, and reports whether all pass. It changes nothing.
func (j *joint) look(s *Store) bool {
	all := true
	for i := range j.parts {
		p := &j.parts[i]
		if !p.needsRoom() || !p.denyNew(s, j.now) {
			p.look(j.now)
			if p.passes && !p.grow(s, j.now) {
				p.denyGrowth(s, j.now)
				j.cramped = true
			}
		}
		all = all && p.passes
	}
	return all
}

// denyNew decides a new key for which there is no room, or that may be one that was forgotten.
func (p *jointPart) denyNew(s *Store, now int64) bool {
	switch {
	case !isPeek(p.op) && now < p.shard.swept:
		p.verdict = denySwept(now, p.shard.swept)
	case !p.counted:
		p.verdict = s.denyFull(p.op, now, p.binding.wait(now))
		if !isPeek(p.op) {
			s.overflowed.Add(1)
		}
	default:
		return false
	}
	p.passes, p.decided = isPeek(p.op), true
	return true
}

// grow counts the memory that the account needs for the part, and reports whether there is enough.
func (p *jointPart) grow(s *Store, now int64) bool {
	if isPeek(p.op) || s.room.bytes.Load() < s.room.maxBytes/2 { // there is enough for any
		return true
	}
	a := p.trial
	if p.op.Kind != algorithm.Reserve {
		a, _ = p.shard.try(p.account(), p.binding.program, p.op, now)
	}
	e := p.entry
	if e == nil {
		e = new(entry)
	}
	more := wordBytes * int64(e.growth(a))
	if b := p.binding; b.addsProgram(e, &a) && !b.owner.holds(b.program) {
		more += programBytes
	}
	if more <= 0 {
		return true
	}
	if !s.room.grow(p.binding.owner, more) {
		return false
	}
	p.grown = more
	return true
}

// denyGrowth denies a part for which there is no memory.
func (p *jointPart) denyGrowth(s *Store, now int64) {
	counter := &s.refused
	if p.entry == nil {
		counter = &s.overflowed
	}
	counter.Add(1)
	p.verdict = s.denyFull(p.op, now, p.binding.wait(now))
	p.passes, p.decided = false, true
}

// look is for a Take a peek, which tells whether there is room, and for a Reserve the operation on a copy.
func (p *jointPart) look(now int64) {
	a := p.account()
	if p.op.Kind == algorithm.Reserve {
		a.State = slices.Clone(a.State)
		trial, r := a.Apply(p.binding.program, p.op, now)
		p.trial, p.verdict, p.passes = trial, r.Verdict(), r.Allowed
		return
	}
	_, r := a.Apply(p.binding.program, algorithm.Op{}, now)
	p.verdict, p.passes = r.Verdict(), r.Remaining >= p.op.Cost
}

// account returns the key's account, or the one that it would be added with.
func (p *jointPart) account() algorithm.Account {
	if p.entry != nil {
		return p.entry.account
	}
	return p.binding.fresh(nil)
}

// take carries out all parts, which pass.
func (j *joint) take() {
	added := false
	for i := range j.parts {
		p := &j.parts[i]
		if p.decided || isPeek(p.op) {
			continue
		}
		if p.entry == nil {
			p.entry, added = p.binding.add(p.shard, p.fp), true
			p.counted = false
		}
		p.carryOut(j.now)
	}
	if added { // no entry is at work any more: others may be forgotten
		for _, h := range j.shards {
			h.sweepWithAdd(j.now)
		}
	}
}

// deny answers all parts, of which some do not pass. These are denied; an account of theirs is written as it is when that happens alone.
func (j *joint) deny() {
	for i := range j.parts {
		p := &j.parts[i]
		switch {
		case p.decided:
		case !p.passes && p.entry != nil:
			p.denyKnown(j.now)
		case !p.passes:
			_, r := p.account().Apply(p.binding.program, p.op, j.now)
			p.verdict = r.Verdict()
		case p.op.Kind == algorithm.Reserve:
			_, r := p.account().Apply(p.binding.program, algorithm.Op{}, j.now)
			p.verdict = r.Verdict()
		}
	}
}

// denyKnown denies a part of an existing key, and writes the account as a single operation would.
func (p *jointPart) denyKnown(now int64) {
	if p.op.Kind != algorithm.Reserve {
		p.verdict, _ = p.binding.apply(p.shard, p.entry, p.op, now)
		return
	}
	p.binding.keep(p.shard, p.entry, p.trial, now, now+int64(p.verdict.Reset))
}

// carryOut carries out the part, for which there is memory, on its entry.
func (p *jointPart) carryOut(now int64) {
	if p.binding.takesInPlace(p.entry, p.op) {
		p.verdict = p.binding.takeInPlace(p.shard, p.entry, p.op, now)
		return
	}
	if p.op.Kind != algorithm.Reserve {
		a, r := p.shard.try(p.entry.account, p.binding.program, p.op, now)
		p.verdict = r.Verdict()
		p.binding.set(p.shard, p.entry, a, now, now+int64(r.ResetAfter))
		return
	}
	p.binding.set(p.shard, p.entry, p.trial, now, now+int64(p.verdict.Reset))
}
