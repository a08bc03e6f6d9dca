package policy

import (
	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
	"github.com/weirlimit/weir/store"
)

// A group is what applies together of a policy: its limits, a plan, or limits of a client's own.
type group struct {
	plan            string
	deny, unlimited bool
	specs           []spec         // of the limits, until they are bound
	limits          []*store.Bound // in the order of specs
}

// A spec is a limit of the configuration, and its place there.
type spec struct {
	store.Spec
	field string
}

func (g *group) empty() bool { return g.size() == 0 }

// size returns how many decisions the group has: one for each limit, and one for a plan without
// limits.
func (g *group) size() int {
	if g.deny || g.unlimited {
		return 1
	}
	return len(g.limits)
}

// tries reports whether the policy tries its candidate on the client: in place of the default limits,
// not of plans.
func (a *applied) tries() bool { return a.candidate != nil && a.group == a.limits }

// findGroup sets the client of the request under the policy, its grant, and the limits that apply.
func (v *rules) findGroup(a *applied, request *facts) {
	if a.group = a.limits; v.clients == nil || a.rule.client == nil {
		return
	}
	of, value := a.rule.client.value(request)
	if of == nil {
		return
	}
	if of.hash {
		a.client = of.name() + "=" + of.encode(request, value)
	} else {
		a.client = of.client(value)
	}
	grant, ok := v.clients.Grant(a.client)
	if !ok && a.unnamed && !NamesSource(value) {
		grant, ok = v.clients.Grant(value)
	}
	if ok {
		a.grant, a.group = grant, v.granted(a.rule, grant)
	}
}

// granted returns the limits of a grant under a policy.
func (v *rules) granted(r *rule, grant *Grant) *group {
	if grant.Plan != "" {
		if plan := r.plans[grant.Plan]; plan != nil {
			return plan
		}
		return r.limits
	}
	limits, ok := grant.Limits[r.name]
	if !ok && r.plans != nil {
		limits = grant.Limits[""]
	}
	if len(limits) == 0 {
		return r.limits
	}
	g := &group{plan: planOwn}
	for i, limit := range limits {
		b := v.own[ownSpec(r, i, limit)]
		if b == nil { // the clients have changed, and are about to be given to UseClients
			return r.limits
		}
		g.limits = append(g.limits, b)
	}
	return g
}

// claims appends the limits that the request is charged for, and returns a decision on each to be
// made: of a plan without limits it is made.
func claims(policies []applied, list []decide.Claim) ([]decide.Claim, []LimitDecision) {
	n := 0
	for i := range policies {
		a := &policies[i]
		if n += a.group.size(); a.tries() {
			n += a.candidate.size()
		}
	}
	if n == 0 {
		return nil, nil
	}
	each := make([]LimitDecision, 0, n)
	for i := range policies {
		a := &policies[i]
		if a.wrong != nil {
			continue
		}
		if list, each = a.claims(int32(i), a.group, a.role, list, each); a.tries() {
			list, each = a.claims(int32(i), a.candidate, Candidate, list, each)
		}
	}
	return list, each
}

// claims appends the limits of a group of the policy.
func (a *applied) claims(policy int32, g *group, role Role, list []decide.Claim, each []LimitDecision) ([]decide.Claim, []LimitDecision) {
	d := LimitDecision{Policy: a.name, Name: a.name, Plan: a.group.plan, Key: a.key, Cost: a.cost, Role: role, rule: a.rule}
	k := decide.Claim{Key: a.key, Cost: a.cost, Policy: policy, Role: decide.Role(role), Stated: a.stated}
	if g.deny || g.unlimited {
		if d.Allowed = g.unlimited; g.deny {
			d.RetryAfter = weir.Never
		}
		each = append(each, d)
		k.Decision = &each[len(each)-1].Decision
		return append(list, k), each
	}
	for _, b := range g.limits {
		if role == Candidate || len(g.limits) > 1 {
			d.Name = b.Name // policy/limit, or policy/candidate/limit
		}
		k.Bound, d.Limit = b, b.Limit
		each = append(each, d)
		k.Decision = &each[len(each)-1].Decision
		list = append(list, k)
	}
	return list, each
}
