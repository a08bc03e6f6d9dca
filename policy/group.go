package policy

import "github.com/weirlimit/weir/store"

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
