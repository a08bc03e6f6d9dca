package policy

// Keys are what a request is counted as, for each policy that matches it: two requests that have one of them in common may be charged to one state, and other
// requests are not. Of a request that makes no sense there are none. They are for who decides several requests at once, and wants those that meet in order.
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
