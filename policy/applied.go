package policy

// An applied policy is one that matches a request.
type applied struct {
	*rule
	group  *group
	client string // its name, "" without one
	grant  *Grant // nil for the default limits
	key    string
	cost   int64
	stated bool // the request states its cost
	// wrong is the error of the cost, for a policy that enforces nothing: it is left out.
	wrong error
}

// applied appends the policies that match, with the key, the limits and the cost of the request.
func (v *rules) applied(r *facts, list []applied) ([]applied, error) {
	if err := r.bounds(); err != nil {
		return nil, err
	}
	if len(r.Path) > MaxRegexPath {
		if err := v.index.regexBound(v.rules, r); err != nil {
			return nil, err
		}
	}
	var space [16]int32
	for _, n := range v.index.find(r, space[:0]) {
		a := applied{rule: &v.rules[n]}
		a.key = a.rule.key.key(r)
		if r.May != nil && !r.May(a.name, a.key) {
			return nil, ErrForbidden
		}
		a.cost, a.stated, a.wrong = a.rule.cost.cost(r)
		if v.findGroup(&a, r); a.wrong != nil && a.role == Enforced && !a.group.empty() {
			return nil, a.wrong
		}
		list = append(list, a)
	}
	if len(r.wrong) > 0 {
		if err := v.enforcedBounds(r.Request); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// enforcedBounds returns an error if an enforced policy reads a part of the request beyond its
// bound. For a policy in shadow mode, which decides nothing, such a part has no values.
func (v *rules) enforcedBounds(request *Request) error {
	r := facts{Request: request}
	for i := range v.index.alternatives {
		a := &v.index.alternatives[i]
		if rule := &v.rules[a.policy]; rule.role == Enforced && a.matchesPath(r.Path) && a.matches(&r) {
			_ = rule.key.key(&r)
			if v.clients != nil {
				_, _ = rule.client.value(&r)
			}
			_, _, _ = rule.cost.cost(&r)
		}
	}
	if len(r.wrong) > 0 {
		return r.wrong[0]
	}
	return nil
}

// Keys returns the keys of a request under the policies that match it, and none for an invalid
// request. Only requests with a common key can be charged to one state, so a caller that decides
// several requests at once keeps these in order.
func (s *Set) Keys(r *Request) []string {
	v := s.load()
	if v == nil {
		return nil
	}
	policies, err := v.applied(&facts{Request: r}, nil)
	if err != nil {
		return nil
	}
	keys := make([]string, len(policies))
	for i := range policies {
		keys[i] = policies[i].name + "/" + policies[i].key // no policy has a / in its name
	}
	return keys
}
