package memory

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	// ownerBits are the bits of a fingerprint that hold the index of its owner.
	ownerBits = 16
	ownerMask = 1<<ownerBits - 1
	// commonOwner is the index of the owner of all names and limits that come when there are mostOwners others.
	commonOwner = 1
	// mostOwners is how many owners a store has at most.
	mostOwners = 4096
)

// An owner is a name, or a limit without one: all keys under it have one share of the store.
type owner struct {
	text     string // name and limit, as they are hashed
	label    string // the name or the limit's text, for people
	index    uint64
	bindings atomic.Int64 // that are in use
	keys     atomic.Int64
	bytes    atomic.Int64 // nominal for keys of one word, see slotBytes
}

// An ownerTable has the owners of a store. Those that have neither keys nor bindings make room for others.
type ownerTable struct {
	mu      sync.Mutex
	byText  map[string]*owner
	byIndex atomic.Pointer[[]*owner] // replaced, not changed; index 0 is never used
	vacant  []uint64                 // indexes that can be used again
}

func (t *ownerTable) init() {
	common := &owner{label: "all other names", index: commonOwner}
	common.bindings.Store(math.MaxInt32) // never vacant
	t.byText = map[string]*owner{}
	t.byIndex.Store(&[]*owner{nil, common})
}

// of returns the owner of a key, by its fingerprint.
func (t *ownerTable) of(lo uint64) *owner { return (*t.byIndex.Load())[lo&ownerMask] }

// bind returns the owner of this text for a binding, of which release is called when it is no longer used.
func (t *ownerTable) bind(text, label string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.byText[text]
	if o == nil {
		o = t.add(text, label)
	}
	o.bindings.Add(1)
	return o
}

func (o *owner) release() { o.bindings.Add(-1) }

// releaseWith releases the owner when the binding is garbage.
func releaseWith[B any](binding *B, o *owner) { runtime.AddCleanup(binding, (*owner).release, o) }

func (t *ownerTable) add(text, label string) *owner {
	all := *t.byIndex.Load()
	if len(t.vacant) == 0 && len(all) > mostOwners {
		t.vacate(all)
	}
	o := &owner{text: text, label: label, index: uint64(len(all))}
	switch {
	case len(t.vacant) > 0:
		o.index = t.vacant[len(t.vacant)-1]
		t.vacant = t.vacant[:len(t.vacant)-1]
	case len(all) > mostOwners:
		return all[commonOwner]
	}
	next := make([]*owner, max(len(all), int(o.index)+1))
	copy(next, all)
	next[o.index] = o
	t.byIndex.Store(&next)
	t.byText[text] = o
	return o
}

// vacate finds the owners that have no keys and no bindings. No key can be added to them: that takes a binding.
func (t *ownerTable) vacate(all []*owner) {
	for _, o := range all[commonOwner+1:] {
		if o.bindings.Load() == 0 && o.keys.Load() == 0 && o == t.byText[o.text] {
			delete(t.byText, o.text)
			t.vacant = append(t.vacant, o.index)
		}
	}
}

// largest returns the owner that uses most.
func (t *ownerTable) largest() (most *owner) {
	for _, o := range (*t.byIndex.Load())[commonOwner:] {
		if most == nil || o.bytes.Load() > most.bytes.Load() {
			most = o
		}
	}
	return most
}
