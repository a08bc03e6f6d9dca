package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/nearest"
	"github.com/weirlimit/weir/store"
)

// What a plan can be besides limits, and what a client's grant of its own limits is called.
const (
	planDeny      = "deny"
	planUnlimited = "unlimited"
	planOwn       = "own"
)

const (
	policyNames = "1 to 64 of a-z 0-9 . _ -"
	limitNames  = policyNames + ", and not a number: a limit that has no name is called by its place"
)

const databasesTaken = "sqlite:file or postgres://user@host/database"

// A rule is a policy, compiled.
type rule struct {
	name      string
	key       keyMaker
	client    keyPart // nil: there are no plans
	unnamed   bool    // clients without a source in their name are looked up, too
	cost      coster
	limits    *group
	plans     map[string]*group
	candidate *group // nil: none
	role      Role   // of its limits
	onError   store.OnError
	counts    *counts
}

// An inventory is a configuration, compiled.
type inventory struct {
	rules []rule
	index *index
	// plans are the names of all plans, byName the rules.
	plans  map[string]bool
	byName map[string]*rule
	// sources are the names of the clients' sources.
	sources []string

	warnings []Warning // in the order of the file
}

// compile checks a configuration and compiles it. The limits are not yet bound.
func compile(c *Config, p *problems) *inventory {
	v := &inventory{plans: map[string]bool{}, byName: map[string]*rule{}}
	if len(c.Policies) > maxPolicies {
		p.addf("policies", "has %d entries; accepted: at most %d", len(c.Policies), maxPolicies)
		return v
	}
	p.clients(&c.Clients)
	v.rules = make([]rule, len(c.Policies))
	matches := make([][]alternative, len(c.Policies))
	for i := range c.Policies {
		field := at("policies", i)
		v.rules[i] = p.rule(&c.Policies[i], field)
		matches[i] = p.alternatives(c.withHead(i), field+".match")
		r := &v.rules[i]
		if v.byName[r.name] != nil && !p.broken(field+".name") {
			p.addf(field+".name", "is %q, as another's; accepted: a name of its own", r.name)
		}
		v.byName[r.name] = r
		for name := range r.plans {
			v.plans[name] = true
		}
	}
	if len(p.list) == 0 {
		v.index = newIndex(matches)
		v.findSources()
	}
	return v
}

// findSources sets the sources of clients: of the policies with plans, or of all if none has plans.
// A name without a source is unambiguous only with one source.
func (v *inventory) findSources() {
	plans := len(v.plans) > 0
	for i := range v.rules {
		if r := &v.rules[i]; r.plans != nil || !plans {
			for j := range r.client {
				v.sources = append(v.sources, r.client[j].name())
			}
		}
	}
	slices.Sort(v.sources)
	v.sources = slices.Compact(v.sources)
	for i := range v.rules {
		r := &v.rules[i]
		r.unnamed = len(v.sources) == 1 && !slices.ContainsFunc(r.client, func(s keySource) bool { return s.name() != v.sources[0] })
	}
}

func (p *problems) clients(c *Source) {
	known := c.Database == "" || strings.HasPrefix(c.Database, "sqlite:") || strings.HasPrefix(c.Database, "postgres://") || strings.HasPrefix(c.Database, "postgresql://")
	if !known && !p.broken("clients.database") { // it may hold a password
		p.addf("clients.database", "is of no known kind; accepted: %s", databasesTaken)
	}
	if c.Poll != "" {
		if d, err := time.ParseDuration(c.Poll); err != nil || d < 100*time.Millisecond || d > time.Hour {
			p.addf("clients.poll", "is %s; accepted: a duration of 100ms to 1h", short(c.Poll))
		}
	}
	if c.Database == "" && (c.Poll != "" || c.Snapshot != "") {
		p.missing("clients.database", databasesTaken)
	}
}

func (p *problems) rule(c *Policy, field string) rule {
	r := rule{name: c.Name, role: Enforced}
	switch {
	case p.broken(field + ".name"):
	case c.Name == "":
		p.missing(field+".name", policyNames)
	case !isName(c.Name):
		p.addf(field+".name", "is %s; accepted: %s", short(c.Name), policyNames)
	}
	r.key = p.key(c.Key, field+".key")
	r.cost = p.cost(&c.Cost, field+".cost")
	r.limits = &group{specs: p.limits(c.Limits, field+".limits", c.Name+"/", nil)}
	if c.Candidate != nil {
		r.candidate = &group{specs: p.limits(c.Candidate, field+".candidate", c.Name+"/candidate/", nil)}
	}
	p.plans(c, &r, field)
	if len(c.Limits)+len(c.Plans)+len(c.Candidate) == 0 && !p.broken(field+".plans") && !p.broken(field+".candidate") {
		p.missing(field+".limits", "limits such as [100/1m, 5/1s], or plans, or a candidate")
	}
	switch c.Mode {
	case "", modeEnforce:
	case modeShadow:
		r.role = Shadow
	default:
		p.choice(c.Mode, field+".mode", modeEnforce, modeShadow)
	}
	if c.OnStoreError != "" {
		var err error
		if r.onError, err = store.ParseOnError(c.OnStoreError); err != nil {
			p.choice(c.OnStoreError, field+".on_store_error", store.Deny.String(), store.Allow.String(), store.Local.String(), "local 25%")
		}
	}
	return r
}

// choice notes a text that is none of those accepted.
func (p *problems) choice(text, field string, accepted ...string) {
	guess := ""
	if near := nearest.Of(text, accepted); near != "" {
		guess = "; did you mean " + near + "?"
	}
	p.addf(field, "is %s%s; accepted: %s", short(text), guess, strings.Join(accepted, ", "))
}

func (p *problems) plans(c *Policy, r *rule, field string) {
	if c.Plans != nil {
		r.plans = map[string]*group{}
	}
	for _, name := range sorted(c.Plans) {
		f, plan := field+".plans."+name, c.Plans[name]
		if !isName(strings.ToLower(name)) || name == planOwn {
			p.addf(f, "is the name of a plan; accepted: 1 to 64 of a-z A-Z 0-9 . _ -, other than own")
		}
		kinds := 0
		for _, is := range []bool{plan.Deny, plan.Unlimited, len(plan.Limits) > 0} {
			if is {
				kinds++
			}
		}
		if kinds != 1 && !p.broken(f) {
			p.addf(f, "is not one of limits, deny and unlimited; accepted: a list such as [1000/1m], deny or unlimited")
		}
		r.plans[name] = &group{plan: name, deny: plan.Deny, unlimited: plan.Unlimited, specs: p.limits(plan.Limits, f, c.Name+"/", c.Limits)}
	}
	switch {
	case c.Client != "":
		r.client = p.keyPart(c.Client, field+".client")
	case len(r.key) > 0:
		r.client = r.key[0]
	case c.Plans != nil && len(c.Key) == 1 && c.Key[0] == keyAll:
		p.addf(field+".client", "is missing, where the key is all; accepted: the part that names the client whose plan counts, such as header:X-API-Key")
	}
}

// limits reads a list of limits, whose states have names that begin with prefix. One that has no name is called as the one in its place in like.
func (p *problems) limits(list []NamedLimit, field, prefix string, like []NamedLimit) []spec {
	if len(list) > maxLimits {
		p.addf(field, "has %d entries; accepted: at most %d", len(list), maxLimits)
		return nil
	}
	limits := make([]spec, 0, len(list))
	names := map[string]bool{}
	for i, named := range list {
		f, name := p.one(field, i), named.Name
		switch {
		case name == "":
			name = nameLike(like, i)
		case p.broken(f + ".name"):
		case !isName(name) || strings.Trim(name, "0123456789") == "":
			p.addf(f+".name", "is %s; accepted: %s", short(name), limitNames)
		}
		if names[name] && !p.broken(f) {
			p.addf(f, "is called %q, as another of the list; accepted: a name of its own", name)
		}
		names[name] = true
		if p.broken(f) || p.broken(f+".limit") {
			continue
		}
		limit, err := weir.ParseLimit(named.Limit)
		if err != nil {
			p.addf(f, "is %s: %s", short(named.Limit), strings.TrimPrefix(err.Error(), "weir: "))
			continue
		}
		p.noteLimit(f, limit)
		limits = append(limits, spec{store.Spec{Limit: limit, Name: prefix + name}, f})
	}
	return limits
}

// noteLimit notes the first limit per day of a configuration, and the first per 24 hours, per week
// and per 168 hours.
func (p *problems) noteLimit(field string, limit weir.Limit) {
	kind := weir.Limit{Unit: limit.Unit, Period: limit.Period}
	if note := limit.Note(); note != "" && !p.noted[kind] {
		if p.noted == nil {
			p.noted = map[weir.Limit]bool{}
		}
		p.noted[kind] = true
		p.notef(field, "may be misread: %s", note)
	}
}

// nameLike returns what the limit in a place is called that has no name: as the default limit in that place.
func nameLike(defaults []NamedLimit, i int) string {
	if i < len(defaults) && defaults[i].Name != "" {
		return defaults[i].Name
	}
	return strconv.Itoa(i + 1)
}
