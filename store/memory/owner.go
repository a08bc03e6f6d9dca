package memory

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirlimit/weir/algorithm"
)

const (
	// ownerBits is the number of bits of a fingerprint with the index of its owner.
	ownerBits = 16
	ownerMask = 1<<ownerBits - 1
	// commonOwner is the index of the owner of all names and limits beyond mostOwners.
	commonOwner = 1
	// mostOwners is how many owners a store has at most.
	mostOwners = 4096
	// maxLabel is the most bytes of a label: a name may be long, and the room does not count
	// owners.
	maxLabel = 64
)

// An owner is a name, or a limit without a name: all its keys have one share of the store.
type owner struct {
	id       fingerprint // of the name and the limit
	label    string      // the start of the name or the limit's text, for people
	index    uint64
	bindings atomic.Int64 // in use
	keys     atomic.Int64
	// bytes is nominal for keys of one word, see slotBytes, and for Programs that other owners hold
	// too.
	bytes atomic.Int64

	mu       sync.Mutex
	programs compactMap[*algorithm.Program, int] // the number of records that refer to each
}

// An ownerTable has the owners of a store. Owners without keys and bindings make room for new
// owners.
type ownerTable struct {
	mu      sync.Mutex
	byID    map[fingerprint]*owner
	byIndex [mostOwners + 1]atomic.Pointer[owner] // index 0 is never used
	used    int                                   // indexes below this one were used
	vacant  []uint64                              // indexes for reuse
	// owners that found no index since the last search
	futile int
}

// searchEvery is how many owners find no index between two searches for vacant ones: a search looks
// at all owners, and a client that names a new limit with each request causes many.
const searchEvery = 64

func (t *ownerTable) init() {
	common := &owner{label: "all other names", index: commonOwner}
	t.byID = map[fingerprint]*owner{}
	t.byIndex[commonOwner].Store(common)
	t.used = commonOwner + 1
}

// of returns the owner of a key, by its fingerprint.
func (t *ownerTable) of(lo uint64) *owner { return t.byIndex[lo&ownerMask].Load() }

// bind returns the owner with this id for a binding. The caller calls release when the binding is
// no longer in use.
func (t *ownerTable) bind(id fingerprint, label string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.byID[id]
	if o == nil {
		o = t.add(id, label)
	}
	o.bindings.Add(1)
	return o
}

// inUse reports whether the owner has bindings or keys. No key can be added to an owner without
// bindings.
func (o *owner) inUse() bool { return o.bindings.Load() > 0 || o.keys.Load() > 0 }

func (o *owner) release() { o.bindings.Add(-1) }

// releaseWith releases the owner when the binding is garbage.
func releaseWith[B any](binding *B, o *owner) { runtime.AddCleanup(binding, (*owner).release, o) }

func (t *ownerTable) add(id fingerprint, label string) *owner {
	o := &owner{id: id, label: strings.Clone(label[:min(len(label), maxLabel)])}
	switch {
	case t.used <= mostOwners:
		o.index = uint64(t.used)
		t.used++
	case t.findVacant():
		o.index = t.vacant[len(t.vacant)-1]
		t.vacant = t.vacant[:len(t.vacant)-1]
	default:
		return t.byIndex[commonOwner].Load()
	}
	t.byIndex[o.index].Store(o)
	t.byID[id] = o
	return o
}

// findVacant reports whether there is a vacant index. It searches for owners that are not in use,
// but only while the common owner is not in use either: a name of the common owner that got an
// index would have other keys under it, and so a second budget.
func (t *ownerTable) findVacant() bool {
	if len(t.vacant) > 0 {
		return true
	}
	if t.futile%searchEvery == 0 && !t.byIndex[commonOwner].Load().inUse() {
		for i := commonOwner + 1; i < t.used; i++ {
			if o := t.byIndex[i].Load(); !o.inUse() {
				delete(t.byID, o.id)
				t.vacant = append(t.vacant, o.index)
			}
		}
	}
	if len(t.vacant) > 0 {
		t.futile = 0
		return true
	}
	t.futile++
	return false
}

// largest returns the owner with the most bytes.
func (t *ownerTable) largest() (most *owner) {
	for i := commonOwner; i < len(t.byIndex); i++ {
		o := t.byIndex[i].Load()
		if o == nil {
			break
		}
		if most == nil || o.bytes.Load() > most.bytes.Load() {
			most = o
		}
	}
	return most
}
