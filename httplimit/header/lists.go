package header

import (
	"net/http"
	"time"

	"github.com/weirlimit/weir/admission"
)

// An entry is a limit in RateLimit-Policy and RateLimit, or in one of them.
type entry struct {
	name          string
	policy, limit string // the members; "" if there is none
	remaining     int64  // of limit
	within        int64  // of limit; 0 if it does not say
}

// Exhausted returns for how long, at the longest, nothing is left of a limit that RateLimit in h tells of. It is 0 if each of them leaves something, or does not say for how long.
func Exhausted(h http.Header) (longest time.Duration) {
	for _, m := range membersTold(h[rateLimit]) {
		if l := limitOf(m); l != nil && l.remaining == 0 {
			longest = max(longest, bounded(l.within))
		}
	}
	return longest
}

func writeLists(h http.Header, each []admission.Standing) {
	if len(h[ratePolicy]) > 0 || len(h[rateLimit]) > 0 {
		joinLists(h, each)
		return
	}
	var policyBuffer, limitBuffer [128]byte
	policies, limits := policyBuffer[:0], limitBuffer[:0]
	for i := range each {
		s := &each[i]
		limit := s.Limit.Canonical()
		if i > 0 {
			policies, limits = append(policies, ", "...), append(limits, ", "...)
		}
		w := windowOf(&limit)
		policies = appendPolicy(policies, s.Name, &limit)
		limits = w.append(appendHead(limits, s.Name), &s.Decision)
	}
	setLists(h, policies, limits)
}

// setLists sets both fields. A slice for both is one allocation less.
func setLists(h http.Header, policies, limits []byte) {
	values := []string{string(policies), string(limits)}
	h[ratePolicy], h[rateLimit] = values[:1:1], values[1:2:2]
}

// joinLists writes what is in h already, and then each.
func joinLists(h http.Header, each []admission.Standing) {
	all := entriesOf(h)
	for i := range each {
		all.join(&each[i])
	}
	var policies, limits []byte
	for i := range all.list {
		policies = appendMember(policies, all.list[i].policy)
		limits = appendMember(limits, all.list[i].limit)
	}
	setLists(h, policies, limits)
}

func appendMember(dst []byte, member string) []byte {
	if len(dst) > 0 && member != "" {
		dst = append(dst, ", "...)
	}
	return append(dst, member...)
}

// entries are limits in the order of the answer, each name once.
type entries struct {
	list []entry
	at   map[string]int // by name
}

// of returns the entry of a name, which is one that says nothing if there was none.
func (e *entries) of(name string) *entry {
	i, there := e.at[name]
	if !there {
		i = len(e.list)
		e.list, e.at[name] = append(e.list, entry{name: name}), i
	}
	return &e.list[i]
}

// join puts a limit in its place among the entries, unless one of its name is there that leaves less.
func (e *entries) join(s *admission.Standing) {
	limit := s.Limit.Canonical()
	w := windowOf(&limit)
	next := entry{
		name: wireName(s.Name), policy: string(appendPolicy(nil, s.Name, &limit)), limit: string(w.append(appendHead(nil, s.Name), &s.Decision)),
		remaining: min(max(s.Decision.Remaining, 0), most), within: w.seconds(&s.Decision),
	}
	switch there := e.of(next.name); {
	case !s.Decision.Allowed || !there.leavesLess(&next):
		*there = next
	case there.policy == "":
		there.policy = next.policy
	}
}

// leavesLess reports whether e is there and leaves less than another of its name.
func (e *entry) leavesLess(other *entry) bool {
	if e.limit == "" || e.remaining != other.remaining {
		return e.limit != "" && e.remaining < other.remaining
	}
	return e.within > other.within
}

// entriesOf reads what is in h.
func entriesOf(h http.Header) entries {
	all := entries{at: map[string]int{}}
	for _, m := range membersTold(h[ratePolicy]) {
		if policyOf(m) == nil {
			continue
		}
		if e := all.of(m.name); e.policy == "" {
			e.policy = m.text
		}
	}
	for _, m := range membersTold(h[rateLimit]) {
		l := limitOf(m)
		if l == nil {
			continue
		}
		e, found := all.of(m.name), entry{remaining: l.remaining, within: l.within}
		if !e.leavesLess(&found) {
			e.limit, e.remaining, e.within = m.text, l.remaining, l.within
		}
	}
	return all
}
