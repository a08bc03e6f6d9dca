package policy

import (
	"sync/atomic"
	"time"
)

// Stats are what a policy has done since the set was made, in requests.
type Stats struct {
	Policy  string
	Checked int64 // that it matched; those that are no valid requests are not counted
	// Allowed and Denied say what its enforced limits said, whatever other policies did.
	Allowed, Denied int64
	// ShadowDenied and CandidateDenied would have been denied by its shadow limits, or its candidate.
	ShadowDenied, CandidateDenied int64
	// Failed could not be decided. If the store failed, the policy did as its on_store_error says; where it enforces nothing it was left out,
	// also of a request whose cost makes no sense to it.
	Failed int64
}

// counts are a policy's Stats while they grow.
type counts struct {
	checked, allowed, denied, shadowDenied, candidateDenied, failed atomic.Int64
}

// add counts a request that matches the policy. denied is by role.
func (c *counts) add(a *applied, denied [3]bool, failed bool) {
	c.checked.Add(1)
	if failed {
		c.failed.Add(1)
	}
	switch {
	case a.wrong != nil: // left out
	case denied[Enforced]:
		c.denied.Add(1)
	case a.role == Enforced:
		c.allowed.Add(1)
	case denied[Shadow]:
		c.shadowDenied.Add(1)
	}
	if denied[Candidate] {
		c.candidateDenied.Add(1)
	}
}

// Stats returns what the policies have done, in the order of the configuration. A policy that goes on under its name goes on counting.
func (s *Set) Stats() []Stats {
	v := s.load()
	if v == nil {
		return nil
	}
	list := make([]Stats, len(v.rules))
	for i := range v.rules {
		c := v.rules[i].counts
		list[i] = Stats{
			Policy: v.rules[i].name, Checked: c.checked.Load(), Allowed: c.allowed.Load(), Denied: c.denied.Load(),
			ShadowDenied: c.shadowDenied.Load(), CandidateDenied: c.candidateDenied.Load(), Failed: c.failed.Load(),
		}
	}
	return list
}

// A Status is the state of the sources of a set.
type Status struct {
	Config  SourceStatus
	Clients SourceStatus
	// Policies is how many there are.
	Policies int
}

// A SourceStatus is the state of the configuration, or of the clients.
type SourceStatus struct {
	Source string    // the file or the database, if it is one
	Loaded time.Time // when what is in use came into use; the zero Time if nothing did
	// Err is the reason why the last change was refused, at Failed. It is nil if the change was taken.
	Err    error
	Failed time.Time
}

func (s *SourceStatus) update(source string, err error) {
	if s.Err = err; err != nil {
		s.Failed = time.Now()
		return
	}
	s.Source, s.Loaded, s.Failed = source, time.Now(), time.Time{}
}

// Status returns what the set works with now.
func (s *Set) Status() Status {
	if s.load() == nil {
		return Status{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.status
	status.Policies = len(s.load().rules)
	return status
}
