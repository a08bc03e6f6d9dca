package httpapi

import (
	"bytes"
	"net/http"
	"time"
)

// A Status is what /v1/status tells of a server, and of what it follows. What was loaded last stays in force while its source can't
// be read, and while what that says makes no sense.
type Status struct {
	Version string         `json:"version"`
	Store   string         `json:"store"` // its kind
	Started time.Time      `json:"started"`
	Config  *ConfigStatus  `json:"config,omitempty"`  // nil without policies
	Clients *ClientsStatus `json:"clients,omitempty"` // nil without a database of clients
	// Certificate is nil without TLS.
	Certificate *CertificateStatus `json:"certificate,omitempty"`
	// Users is nil without a file of users.
	Users *UsersStatus `json:"users,omitempty"`
	// Full is true if the store in memory had no room for a key within the last minute.
	Full bool `json:"-"`
	// EngineAway is since when the engine of the store has not served, and why. Empty if it serves.
	EngineAway string `json:"-"`
}

// A Change is the last change of a source.
type Change struct {
	Loaded time.Time `json:"loaded"` // when the content in use was read
	// Refused is the reason for which the present content is not in use, since RefusedSince. Empty: it
	// is in use.
	Refused      string    `json:"refused,omitempty"`
	RefusedSince time.Time `json:"refused_since,omitzero"`
}

// NewChange returns the change of a source that was loaded, and failed to load, if err is not nil.
func NewChange(loaded time.Time, err error, failed time.Time) Change {
	if err == nil {
		return Change{Loaded: loaded}
	}
	return Change{loaded, err.Error(), failed}
}

// A CertificateStatus is the state of the server's certificate.
type CertificateStatus struct {
	Names   []string  `json:"names"`   // names and addresses of the server
	Expires time.Time `json:"expires"` // the end of its time
	Change
	// Expired is true after Expires, and Soon from 7 days before.
	Expired bool `json:"-"`
	Soon    bool `json:"-"`
}

// A UsersStatus is the state of the file of users.
type UsersStatus struct {
	Source string `json:"source"`
	Users  int    `json:"users"` // in use
	Change
}

// A ConfigStatus tells of the policies.
type ConfigStatus struct {
	Source   string `json:"source"`
	Policies int    `json:"policies"` // in force
	Change
}

// A ClientsStatus tells of the database of clients.
type ClientsStatus struct {
	Database string `json:"database"` // its URL, without what is secret
	Clients  int    `json:"clients"`  // in force
	Change
	// Away says why the database can't be read, and AwaySince since when. Empty if it can.
	Away      string    `json:"away,omitempty"`
	AwaySince time.Time `json:"away_since,omitzero"`
	// BadRows is the number of invalid rows, since BadRowsSince; their clients keep the last good
	// row, or have the default limits. BadRowErrors are the reasons, of the first rows; names of
	// clients in them are masked.
	BadRows      int       `json:"bad_rows,omitempty"`
	BadRowsSince time.Time `json:"bad_rows_since,omitzero"`
	BadRowErrors []string  `json:"bad_row_errors,omitempty"`
	// FromSnapshot is when the snapshot was written that is in force, for want of the database.
	FromSnapshot time.Time `json:"from_snapshot,omitzero"`
	// Saved is when the snapshot was last written, and SaveError why it can't be.
	Saved     time.Time `json:"saved,omitzero"`
	SaveError string    `json:"save_error,omitempty"`
}

// warnings are what an operator should know, although decisions are made. Who may only see that the server is ready is not told more.
func (s Status) warnings() (list []string) {
	add := func(is bool, warning string) {
		if is {
			list = append(list, warning)
		}
	}
	add(s.EngineAway != "", s.EngineAway)
	add(s.Full, "the store has no room for more keys")
	if u := s.Users; u != nil {
		add(u.Refused != "", "the last change of the users is refused")
	}
	if c := s.Certificate; c != nil {
		add(c.Expired, "the certificate has expired")
		add(c.Soon && !c.Expired, "the certificate expires within 7 days")
		add(c.Refused != "", "the last change of the certificate is refused")
	}
	if c := s.Config; c != nil {
		add(c.Refused != "", "the last change of the policies is refused")
	}
	if c := s.Clients; c != nil {
		add(c.Away != "", "the database of clients is away")
		add(c.BadRows > 0, "rows of the clients make no sense")
		add(c.Refused != "", "the last change of the clients is refused")
		add(!c.FromSnapshot.IsZero(), "the clients are those of the snapshot")
		add(c.SaveError != "", "the snapshot of the clients can't be written")
	}
	return list
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) *Problem {
	return writeJSON(w, new(bytes.Buffer), s.opts.Status())
}
