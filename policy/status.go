package policy

import "time"

// A Status says what a set works with, and what was refused.
type Status struct {
	Config  SourceStatus
	Clients SourceStatus
	// Policies is how many there are.
	Policies int
}

// A SourceStatus is of the configuration, or of the clients.
type SourceStatus struct {
	Source string    // the file or the database, if it is one
	Loaded time.Time // when what is in use came into use; the zero Time if nothing did
	// Err says why the last change was refused, at Failed. It is nil when the last change was taken.
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
