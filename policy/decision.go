package policy

import (
	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/internal/decide"
)

// A Decision is the answer to a request that some policies match. The embedded one is that of the enforced limits together: allowed if all
// allow, with the least Remaining and its Limit, and the greatest RetryAfter of those that deny. With no limit that
// applies it is allowed, and Limit is 0.
type Decision struct {
	weir.Decision
	// Each is what stands for each limit of each policy that matched, enforced or not, in the order of the configuration.
	Each []LimitDecision
	// Denied are the names of the policies that denied, enforced ones only.
	Denied []string
	// Err is the error of the store if it failed. The policies then decided as their on_store_error
	// sets, and Failed is set.
	Err error
	// Token settles the request when its work is done, if there is something to settle: a lease of
	// a concurrency limit, or a reservation. It is encrypted text, for every process with the store
	// and the key (Options.TokenKeys). Otherwise, and if the request is denied, it is empty.
	Token string
}

// A Role says what a limit's decision is good for.
type Role uint8

const (
	// Enforced limits decide.
	Enforced Role = iota
	// Shadow limits, of a policy in shadow mode, are charged and counted, and never deny.
	Shadow
	// Candidate limits are tried beside the enforced ones of their policy: charged and counted, and never deny.
	Candidate
)

// String returns the role as it is shown to people: enforced, shadow, candidate.
func (r Role) String() string { return [...]string{"enforced", "shadow", "candidate"}[r] }

// A LimitDecision is what stands for one limit.
type LimitDecision struct {
	weir.Decision // allowed if this limit alone would allow; of a deny it is not, of unlimited it is
	Policy        string
	// Name is what the limit is called where only names are told: the policy's name, or, of several limits that apply together, policy/limit, and of a
	// candidate policy/candidate/limit. It is this limit's alone, and stays when the limit changes.
	Name  string
	Plan  string     // of the client, "" for the default limits; "own" for limits of its own
	Limit weir.Limit // the zero Limit for a plan that is deny or unlimited
	Key   string     // of the state; may contain a secret of the client, see MaskedKey
	Cost  int64
	Role  Role

	rule *rule // of the policy; nil without a Set
}

// claims appends the limits that the request is charged for, and returns a decision on each to be
// made: of a plan without limits it is made. reserves is set if the request reserves.
func claims(policies []applied, reserves bool, list []decide.Claim) ([]decide.Claim, []LimitDecision) {
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
		if list, each = a.claims(int32(i), a.group, a.role, reserves, list, each); a.tries() {
			list, each = a.claims(int32(i), a.candidate, Candidate, reserves, list, each)
		}
	}
	return list, each
}

// claims appends the limits of a group of the policy.
func (a *applied) claims(policy int32, g *group, role Role, reserves bool, list []decide.Claim, each []LimitDecision) ([]decide.Claim, []LimitDecision) {
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
		k.Bound, k.Cost = b, decide.Cost(&b.Limit, a.cost, reserves)
		d.Limit, d.Cost = b.Limit, k.Cost
		each = append(each, d)
		k.Decision = &each[len(each)-1].Decision
		list = append(list, k)
	}
	return list, each
}

// conclude sets the policies that denied, counts the request for each policy, and removes the limits
// that were skipped.
func (d *Decision) conclude(policies []applied, claims []decide.Claim) {
	next, kept := 0, 0
	for i := range policies {
		a := &policies[i]
		failed := a.wrong != nil || d.Err != nil
		var denied [3]bool // by role
		for ; next < len(claims) && int(claims[next].Policy) == i; next++ {
			k := &claims[next]
			if k.Skipped {
				failed = true
				continue
			}
			if !k.Decision.Allowed {
				denied[k.Role] = true
			}
			if kept < next {
				d.Each[kept] = d.Each[next]
			}
			kept++
		}
		if denied[Enforced] {
			d.Denied = append(d.Denied, a.name)
		}
		a.counts.add(a, denied, failed)
	}
	if d.Each = d.Each[:kept:kept]; kept == 0 {
		d.Each = nil
	}
}
