package clients

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weirlimit/weir/policy"
)

// A Table is all clients at one time, in memory. It does not change, and reading it takes no lock.
//
// It is a large base, and over it a small map of what has changed since: a change copies the map only.
type Table struct {
	now   func() time.Time
	base  *base
	over  map[string]term // the zero term for a client that is gone
	added []*policy.Grant // of over, not in base; in the order in which they came
	uses  map[*policy.Grant]int
	count int // of clients
	bad   badRows

	source string // the URL of the database, without a password; "" if it is of none
}

// A base is what all clients had when it was built.
type base struct {
	index  index
	terms  []uint32 // by place, of the values
	values []term   // each different one
	grants []grantUse

	unqualified int // names without a source

	pool map[string]*policy.Grant // by identity
}

// A term is a grant and when it is valid, in microseconds since 1970. Most clients have one that others have too.
type term struct {
	grant       *policy.Grant
	from, until int64
}

// since and forever bound terms that have no bound.
const (
	since   = math.MinInt64
	forever = math.MaxInt64
)

// A grantUse is how many clients have a grant, and until when the last of them at most.
type grantUse struct {
	grant *policy.Grant
	count int
	until int64
}

// Grant implements [policy.Clients]: what the client has now. It allocates nothing.
func (t *Table) Grant(client string) (*policy.Grant, bool) {
	at, ok := t.term(client)
	if !ok || !t.valid(at) {
		return nil, false
	}
	return at.grant, true
}

func (t *Table) term(client string) (term, bool) {
	if len(t.over) > 0 {
		if at, ok := t.over[client]; ok {
			return at, at.grant != nil
		}
	}
	place, ok := t.base.index.find(client)
	if !ok {
		return term{}, false
	}
	return t.base.values[t.base.terms[place]], true
}

// String returns where the clients are from: the database's URL without a password, or "" if they are in none.
func (t *Table) String() string { return t.source }

// valid asks for the time only if the term has bounds.
func (t *Table) valid(at term) bool {
	if at.from == since && at.until == forever {
		return true
	}
	now := t.now().UnixMicro()
	return at.from <= now && now < at.until
}

// Len returns how many clients there are, also those whose time has not come.
func (t *Table) Len() int { return t.count }

// Unqualified returns how many clients are named by their value alone, without its source.
// [policy.Clients] has the reason.
func (t *Table) Unqualified() int {
	n := t.base.unqualified
	for name, at := range t.over {
		if policy.NamesSource(name) {
			continue
		}
		if _, inBase := t.base.index.find(name); inBase {
			n--
		}
		if at.grant != nil {
			n++
		}
	}
	return n
}

// Grants implements [policy.Clients]. An error of f is returned with the masked name of a client
// with the grant.
func (t *Table) Grants(f func(*policy.Grant) error) error {
	for g := range t.used() {
		if err := f(g); err != nil {
			return fmt.Errorf("client %s: %w", policy.MaskClient(t.holder(g)), err)
		}
	}
	return nil
}

// used returns each grant that a client has, or may come to have.
func (t *Table) used() iter.Seq[*policy.Grant] {
	return func(yield func(*policy.Grant) bool) {
		now, over := t.now().UnixMicro(), map[*policy.Grant]bool{} // which somebody has who changed since the base was built
		for _, at := range t.over {
			if at.grant != nil && at.until > now {
				over[at.grant] = true
			}
		}
		for _, u := range t.base.grants {
			if (over[u.grant] || u.until > now && u.count+t.uses[u.grant] > 0) && !yield(u.grant) {
				return
			}
		}
		for _, g := range t.added {
			if over[g] && !yield(g) {
				return
			}
		}
	}
}

// holder returns the first of the clients that have a grant.
func (t *Table) holder(g *policy.Grant) (first string) {
	found := false
	for name, at := range t.all() {
		if at.grant == g && (!found || name < first) {
			first, found = name, true
		}
	}
	return first
}

// all returns each client and its term, in no order.
func (t *Table) all() iter.Seq2[string, term] {
	return func(yield func(string, term) bool) {
		for place := range t.base.index.len() {
			name := string(t.base.index.name(place))
			if _, changed := t.over[name]; !changed && !yield(name, t.base.values[t.base.terms[place]]) {
				return
			}
		}
		for name, at := range t.over {
			if at.grant != nil && !yield(name, at) {
				return
			}
		}
	}
}

// with returns the table after a change; a nil row deletes its client. The client of a bad row
// keeps its grant.
func (t *Table) with(changes map[string]*row, check check) (*Table, error) {
	next := t.clone()
	p := next.pool(check)
	for name, r := range changes {
		at := term{}
		if r != nil && !r.over(t.now()) {
			var err error
			if at, err = p.term(r); err != nil {
				if err := next.bad.add(r, err); err != nil {
					return nil, err
				}
				continue
			}
		}
		delete(next.bad, name)
		next.put(name, at)
	}
	return next.tidy()
}

// clone returns a copy for a change.
func (t *Table) clone() *Table {
	next := &Table{
		now: t.now, base: t.base, count: t.count, source: t.source,
		over: maps.Clone(t.over), added: slices.Clone(t.added), uses: maps.Clone(t.uses), bad: maps.Clone(t.bad),
	}
	if next.over == nil {
		next.over, next.uses = map[string]term{}, map[*policy.Grant]int{}
	}
	if next.bad == nil {
		next.bad = badRows{}
	}
	return next
}

// tidy ends a change: it drops unused grants, and rebuilds the base after many changes.
func (t *Table) tidy() (*Table, error) {
	next := t
	next.added = slices.DeleteFunc(next.added, func(g *policy.Grant) bool { return next.uses[g] == 0 })
	maps.DeleteFunc(next.uses, func(_ *policy.Grant, n int) bool { return n == 0 })
	if len(next.over) > max(leastOver, t.base.index.len()/partOver) {
		return next.rebuilt()
	}
	return next, nil
}

// A base is built anew when more than leastOver clients, and more than one in partOver, have changed.
const (
	leastOver = 1000
	partOver  = 64
)

// put notes what a client has now, the zero term for nothing.
func (t *Table) put(name string, at term) {
	before, had := t.term(name)
	if had {
		t.uses[before.grant]--
		t.count--
	}
	if at.grant != nil {
		if _, known := t.uses[at.grant]; !known && t.base.pool[grantID(at.grant)] != at.grant {
			t.added = append(t.added, at.grant)
		}
		t.uses[at.grant]++
		t.count++
	}
	if _, inBase := t.base.index.find(name); at.grant == nil && !inBase {
		delete(t.over, name) // it need not be remembered that there is nothing
		return
	}
	t.over[name] = at
}

// rebuilt returns the same clients in a new base.
func (t *Table) rebuilt() (*Table, error) {
	b := newBuilder(t.now)
	for name, at := range t.all() {
		if err := b.add(name, at); err != nil {
			return nil, err
		}
	}
	next, err := b.table()
	if err == nil {
		next.bad, next.source = t.bad, t.source
	}
	return next, err
}
