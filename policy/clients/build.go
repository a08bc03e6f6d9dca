package clients

import (
	"errors"
	"fmt"
	"time"

	"github.com/weirlimit/weir/policy"
)

// A check reports why a client with a grant can't be used, or nil. A nil check accepts all.
type check func(client string, g *policy.Grant) error

// A row is a client as the database or a snapshot has it.
type row struct {
	client, plan, limits string
	from, until          int64 // microseconds since 1970, or since and forever
}

// over reports whether the row's time is over: it is then as if it were not there, also if it makes no sense any more.
func (r *row) over(now time.Time) bool { return r.until <= now.UnixMicro() }

// A brokenError reports rows that make no table. To read them again would not help.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

// A pool has one grant for each plan, and for each different set of limits.
type pool struct {
	check check
	known []map[string]*policy.Grant // by grantID; new grants go into the last
	texts map[string]*policy.Grant   // limits, as they were written
	plans map[string]*policy.Grant
}

func newPool(check check, known ...map[string]*policy.Grant) *pool {
	return &pool{check: check, known: append(known, map[string]*policy.Grant{}), texts: map[string]*policy.Grant{}, plans: map[string]*policy.Grant{}}
}

// pool returns one of the grants that the table has.
func (t *Table) pool(check check) *pool {
	added := make(map[string]*policy.Grant, len(t.added))
	for _, g := range t.added {
		added[grantID(g)] = g
	}
	return newPool(check, t.base.pool, added)
}

// grantID is equal for equal grants.
func grantID(g *policy.Grant) string {
	if g.Plan != "" {
		return "plan " + g.Plan
	}
	return FormatLimits(g.Limits)
}

// term checks a row and returns its term. The error does not name the client.
func (p *pool) term(r *row) (term, error) {
	g, err := p.grant(r)
	if err == nil && r.from >= r.until {
		err = errors.New("clients: valid_until is not after valid_from; accepted: a later time")
	}
	if err == nil && (r.client == "" || len(r.client) > maxClient || !isText(r.client)) {
		err = fmt.Errorf("clients: client is of %d bytes; accepted: 1 to %d bytes of UTF-8 without NUL", len(r.client), maxClient)
	}
	if err == nil {
		err = checkName(r.client, policy.MaskClient)
	}
	if err == nil && p.check != nil {
		err = p.check(r.client, g)
	}
	if err != nil {
		return term{}, err
	}
	return term{g, r.from, r.until}, nil
}

func (p *pool) grant(r *row) (*policy.Grant, error) {
	switch {
	case r.plan == "" && r.limits == "":
		return nil, errors.New("clients: it has neither plan nor limits; accepted: one of both")
	case r.plan != "" && r.limits != "":
		return nil, errors.New("clients: it has a plan and limits; accepted: one of both")
	case len(r.plan) > maxName || !isText(r.plan):
		return nil, fmt.Errorf("clients: plan is of %d bytes; accepted: at most %d bytes of UTF-8 without NUL", len(r.plan), maxName)
	case r.plan != "":
		g, ok := p.plans[r.plan]
		if !ok {
			g = p.intern(&policy.Grant{Plan: r.plan})
			p.plans[r.plan] = g
		}
		return g, nil
	}
	if g, ok := p.texts[r.limits]; ok {
		return g, nil
	}
	limits, err := ParseLimits(r.limits)
	if err != nil {
		return nil, err
	}
	g := p.intern(&policy.Grant{Limits: limits})
	p.texts[r.limits] = g
	return g, nil
}

func (p *pool) intern(g *policy.Grant) *policy.Grant {
	id := grantID(g)
	for _, m := range p.known {
		if same, ok := m[id]; ok {
			return same
		}
	}
	p.known[len(p.known)-1][id] = g
	return g
}

// A builder makes the base of a table.
type builder struct {
	now    func() time.Time
	base   *base
	values map[term]uint32
	uses   map[*policy.Grant]int // places in base.grants
}

func newBuilder(now func() time.Time) *builder {
	return &builder{now: now, base: &base{pool: map[string]*policy.Grant{}}, values: map[term]uint32{}, uses: map[*policy.Grant]int{}}
}

func (b *builder) add(client string, at term) error {
	v, ok := b.values[at]
	if !ok {
		v = uint32(len(b.base.values))
		b.base.values, b.values[at] = append(b.base.values, at), v
	}
	b.base.terms = append(b.base.terms, v)
	if !policy.NamesSource(client) {
		b.base.unqualified++
	}
	i, ok := b.uses[at.grant]
	if !ok {
		i = len(b.base.grants)
		b.base.grants, b.uses[at.grant] = append(b.base.grants, grantUse{grant: at.grant, until: since}), i
		b.base.pool[grantID(at.grant)] = at.grant
	}
	u := &b.base.grants[i]
	u.count, u.until = u.count+1, max(u.until, at.until)
	return b.base.index.add(client)
}

func (b *builder) table() (*Table, error) {
	b.base.terms, b.base.values = trim(b.base.terms), trim(b.base.values)
	if err := b.base.index.seal(); err != nil {
		return nil, brokenError{fmt.Errorf("clients: %w", err)}
	}
	return &Table{now: b.now, base: b.base, count: b.base.index.len()}, nil
}

// A load builds a table from rows.
type load struct {
	*builder
	pool   *pool
	before *Table // nil: none
	bad    badRows
}

func newLoad(now func() time.Time, before *Table, check check) *load {
	l := &load{builder: newBuilder(now), pool: newPool(check), before: before, bad: badRows{}}
	if before != nil { // equal grants stay the same value
		l.pool = before.pool(check)
	}
	return l
}

// row adds a row. The client of a bad row keeps its previous term.
func (l *load) row(r *row) error {
	if r.over(l.now()) {
		return nil
	}
	at, err := l.pool.term(r)
	if err != nil {
		if err := l.bad.add(r, err); err != nil {
			return err
		}
		had := false
		if l.before != nil {
			at, had = l.before.term(r.client)
		}
		if !had {
			return nil
		}
	}
	return l.add(r.client, at)
}

func (l *load) table() (*Table, error) {
	t, err := l.builder.table()
	if err == nil {
		t.bad = l.bad
	}
	return t, err
}

// NewTable makes a table of clients that are in no database, as tests have them. Two of one name are an error, as is one that makes no sense.
func NewTable(clients ...Client) (*Table, error) {
	l := newLoad(time.Now, nil, nil)
	for _, c := range clients {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		if err := l.row(rowOf(&c)); err != nil {
			return nil, err
		}
	}
	t, err := l.table()
	if err != nil {
		return nil, err
	}
	for _, bad := range t.BadRows() {
		return nil, bad
	}
	return t, nil
}

func rowOf(c *Client) *row {
	r := &row{client: c.Name, plan: c.Plan, limits: FormatLimits(c.Limits), from: since, until: forever}
	if !c.From.IsZero() {
		r.from = c.From.UnixMicro()
	}
	if !c.Until.IsZero() {
		r.until = c.Until.UnixMicro()
	}
	return r
}
