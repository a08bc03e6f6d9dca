package clients

import (
	"slices"
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
	// BadRows is the number of invalid rows, and BadRowsSince the time of the first. Each of their
	// clients keeps its last good row, or has the default limits. BadRowErrors are the reasons, of
	// at most 10 rows in order of their names, which are masked. See also [Table.BadRows].
	BadRows      int
	BadRowsSince time.Time
	BadRowErrors []string
	// Refused is the reason for which the latest change is not in effect, and RefusedSince its
	// time; "" if the change is in effect.
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

// took records the table in effect. It reports whether the bad rows changed.
func (s *shown) took(t *Table, now time.Time) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Clients, s.status.Change, s.status.FromSnapshot = t.Len(), now, time.Time{}
	s.status.Changes++
	s.status.Refused, s.status.RefusedSince, s.refuses = "", time.Time{}, nil
	return s.setBadRows(t, now)
}

// started is took, from a snapshot: what was refused stays refused.
func (s *shown) started(t *Table, h snapshotHead, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Clients, s.status.Change, s.status.FromSnapshot = t.Len(), now, h.Written
	s.setBadRows(t, now)
}

// mostBadRowErrors is how many bad rows a Status has the reasons of.
const mostBadRowErrors = 10

func (s *shown) setBadRows(t *Table, now time.Time) (news bool) {
	var texts []string
	for _, bad := range t.bad.list(mostBadRowErrors) {
		texts = append(texts, bad.Error())
	}
	before := &s.status
	news = before.BadRows != len(t.bad) || !slices.Equal(before.BadRowErrors, texts)
	switch {
	case len(t.bad) == 0:
		before.BadRowsSince = time.Time{}
	case before.BadRows == 0:
		before.BadRowsSince = now
	}
	before.BadRows, before.BadRowErrors = len(t.bad), texts
	return news
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
