package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/store"
)

// rules are all that Check reads: they are never changed once they are in use.
type rules struct {
	*inventory
	clients Clients
	own     map[store.Spec]*store.Bound // of clients' own limits
}

// bindAll binds all limits of the configuration.
func (s *Set) bindAll(v *inventory, p *problems) {
	bind := func(r *rule, g *group) {
		for _, spec := range g.specs {
			b, err := store.Bind(s.store, spec.Spec, r.onError)
			if err == nil {
				g.limits = append(g.limits, b)
				continue
			}
			reason := "which the store refuses"
			if _, share := r.onError.Limit(spec.Limit); share != nil {
				reason = "without a share for on_store_error: " + r.onError.String()
			}
			p.addf(spec.field, "is %q, %s: %s", spec.Limit, reason, strings.TrimPrefix(err.Error(), "weir: "))
		}
	}
	for i := range v.rules {
		r := &v.rules[i]
		bind(r, r.limits)
		for _, name := range sorted(r.plans) {
			bind(r, r.plans[name])
		}
		if r.candidate != nil {
			bind(r, r.candidate)
		}
	}
}

// bindClients binds the limits of clients' own, and reports the first grant that makes no sense under these policies.
func (s *Set) bindClients(v *inventory, clients Clients, before map[store.Spec]*store.Bound) (map[store.Spec]*store.Bound, error) {
	own := map[store.Spec]*store.Bound{}
	if clients == nil {
		return own, nil
	}
	if c, ok := clients.(interface{ Unqualified() int }); ok && len(v.sources) > 1 {
		if n := c.Unqualified(); n > 0 {
			return nil, fmt.Errorf("weir: %d of the clients are named by a value alone, and the policies take clients from %s; "+
				"accepted: names with their source, such as %s=…", n, accepted(v.sources), v.sources[0])
		}
	}
	err := clients.Grants(func(g *Grant) error { return s.bindGrant(v, g, own, before) })
	return own, err
}

// bindGrant binds the limits of a grant, if it has its own, or returns an error for an invalid
// grant.
func (s *Set) bindGrant(v *inventory, g *Grant, own, before map[store.Spec]*store.Bound) error {
	if g.Plan != "" {
		if !v.plans[g.Plan] {
			return fmt.Errorf("weir: plan %s is of no policy; accepted: %s", short(g.Plan), accepted(sorted(v.plans)))
		}
		return nil
	}
	for _, name := range sorted(g.Limits) {
		if err := s.bindOwn(v, name, g.Limits[name], own, before); err != nil {
			return err
		}
	}
	return nil
}

// ClientCheck returns a function that checks a client and its grant under the current policies. The
// function returns nil, or the reason of a refusal by [Set.UseClients], without the client's name.
// So a source of clients can leave out a bad client. The function is for one pass over the clients,
// by one goroutine; it caches results by grant.
func (s *Set) ClientCheck() func(client string, g *Grant) error {
	v, own, results := s.load(), map[store.Spec]*store.Bound{}, map[*Grant]error{}
	if v == nil {
		return func(string, *Grant) error { return errNoPolicies }
	}
	return func(client string, g *Grant) error {
		if len(v.sources) > 1 && !NamesSource(client) {
			return fmt.Errorf("weir: the client is named by a value alone, and the policies take clients from %s; "+
				"accepted: a name with its source, such as %s=…", accepted(v.sources), v.sources[0])
		}
		err, known := results[g]
		if !known {
			err = s.bindGrant(v.inventory, g, own, v.own)
			results[g] = err
		}
		return err
	}
}

// bindOwn binds limits of a client's own for the policy, or for all that have plans.
func (s *Set) bindOwn(v *inventory, policy string, limits []weir.Limit, own, before map[store.Spec]*store.Bound) error {
	if policy != "" && v.byName[policy] == nil {
		return fmt.Errorf("weir: a client has limits for %s, which is no policy; accepted: %s", short(policy), accepted(sorted(v.byName)))
	}
	if len(limits) > maxLimits {
		return fmt.Errorf("weir: a client has %d limits for one policy; accepted: at most %d", len(limits), maxLimits)
	}
	for i := range v.rules {
		r := &v.rules[i]
		if policy == "" && r.plans == nil || policy != "" && policy != r.name {
			continue
		}
		if r.client == nil {
			return fmt.Errorf("weir: a client has limits for %q, which knows no clients; accepted: a policy whose key is not all, or that has a client", policy)
		}
		for j, limit := range limits {
			if err := s.bindOne(r, ownSpec(r, j, limit), own, before); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Set) bindOne(r *rule, spec store.Spec, own, before map[store.Spec]*store.Bound) error {
	if own[spec] != nil {
		return nil
	}
	b := before[spec]
	if b == nil || b.OnError != r.onError {
		var err error
		if b, err = store.Bind(s.store, spec, r.onError); err != nil {
			if _, share := r.onError.Limit(spec.Limit); share != nil {
				return fmt.Errorf("weir: a client's limit %q for %q, without a share for on_store_error: %v: %w", spec.Limit, r.name, r.onError, err)
			}
			return fmt.Errorf("weir: a client's limit %q for %q: %w", spec.Limit, r.name, err)
		}
	}
	own[spec] = b
	return nil
}

// ownSpec returns the spec of a client's own limit. It has the state of the default limit in its place.
func ownSpec(r *rule, i int, limit weir.Limit) store.Spec {
	if i < len(r.limits.limits) {
		return store.Spec{Name: r.limits.limits[i].Name, Limit: limit.Canonical()}
	}
	return store.Spec{Name: r.name + "/" + strconv.Itoa(i+1), Limit: limit.Canonical()}
}

// accepted lists names, bounded.
func accepted(names []string) string {
	const most = 10
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "…")
	}
	return strings.Join(names, ", ")
}
