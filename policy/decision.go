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
			if d.Each[next].Cost = k.Cost; kept < next {
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
