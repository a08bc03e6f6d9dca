package clients

import (
	"sync"
	"time"
)

// A Status is how a Follower stands, for health and metrics.
type Status struct {
	Database string    // its URL, without a password
	Clients  int       // in effect
	Change   time.Time // when what is in effect took effect
	Changes  int64     // how many times something took effect

	// Away says why the database can't be read, and Since when; "" while it can.
	Away  string
	Since time.Time
	// FromSnapshot is when the snapshot was written that is in effect, for want of the database; the zero Time if it is not.
	FromSnapshot time.Time
	// Refused says why the latest change is not in effect, and RefusedSince when; "" if all is.
	Refused      string
	RefusedSince time.Time
	Refusals     int64 // how many changes were refused
	// Saved is when the snapshot was last written, and SaveError why it can't be; "" if it can.
	Saved     time.Time
	SaveError string
}

// Status returns how the follower stands.
func (f *Follower) Status() Status {
	f.shown.mu.Lock()
	defer f.shown.mu.Unlock()
	return f.shown.status
}

// shown is a status that is written by those who do the work. The methods report what is news, for the log.
type shown struct {
	mu      sync.Mutex
	status  Status
	refuses error
}

func (s *shown) away(err error, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.status.Away != err.Error()
	if s.status.Away == "" {
		s.status.Since = now
	}
	s.status.Away = err.Error()
	return news
}

func (s *shown) back() (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.status.Away != ""
	s.status.Away, s.status.Since = "", time.Time{}
	return news
}

func (s *shown) took(t *Table, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Clients, s.status.Change, s.status.FromSnapshot = t.Len(), now, time.Time{}
	s.status.Changes++
	s.status.Refused, s.status.RefusedSince, s.refuses = "", time.Time{}, nil
}

// started is took, from a snapshot: what was refused stays refused.
func (s *shown) started(h snapshotHead, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Clients, s.status.Change, s.status.FromSnapshot = h.Clients, now, h.Written
}

func (s *shown) refused(err error, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.status.Refused != err.Error()
	if s.status.Refused == "" {
		s.status.RefusedSince = now
	}
	if news {
		s.status.Refusals++
	}
	s.status.Refused, s.refuses = err.Error(), err
	return news
}

// mended says that the database has again what is in effect.
func (s *shown) mended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Refused, s.status.RefusedSince, s.refuses = "", time.Time{}, nil
	s.status.FromSnapshot = time.Time{}
}

func (s *shown) refusal() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuses
}

func (s *shown) wrote(err error, at time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.status.Saved, s.status.SaveError = at, ""
		return false
	}
	news = s.status.SaveError != err.Error()
	s.status.SaveError = err.Error()
	return news
}
