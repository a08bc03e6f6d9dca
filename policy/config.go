package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirlimit/weir"
)

// Bounds on a configuration.
const (
	maxFile     = 1 << 20 // bytes
	maxPolicies = 10_000
	maxLimits   = 16 // of one list
	maxPlans    = 256
	maxList     = 256 // of other lists, and of the names in a map
	maxText     = 1024
	maxName     = 64
	maxShown    = 20 // errors
)

// A Config is what a file of policies says. [Parse] reads one; a program may also write it down as it is here. All texts are as in the file.
type Config struct {
	Policies []Policy
	Clients  Source

	file  string
	sum   [sha256.Size]byte   // of what was in the file
	where map[string]position // of what stands in the file, by its field
}

// A Policy says which requests it is for, who they are counted as, and the limits.
type Policy struct {
	Name string // unique: 1 to 64 of a-z 0-9 . _ -
	// Match are the requests that it is for: those that any of these matches; of none, all requests.
	Match []Match
	// Key says what is counted: the parts together are the key. ["all"] counts everybody as one.
	Key []string
	// Client is the part that names the client, whose plan counts; "" is the first part of Key.
	Client string
	Cost   Cost
	Limits []NamedLimit    // for clients without a plan
	Plans  map[string]Plan // instead of Limits
	Mode   string          // "" is enforce
	// Candidate are limits that are tried beside Limits, on the clients that have those.
	Candidate    []NamedLimit
	OnStoreError string // the text of a store.OnError; "" is deny
}

// A NamedLimit is a limit and what it is called within its list. When a limit changes and keeps its name, what was used stays used.
type NamedLimit struct {
	Name  string // unique in its list: as of a policy, not a number; "" is its place in the list, from 1
	Limit string // as weir.ParseLimit reads it
}

// A Plan is what its clients have instead of a policy's limits: Deny, Unlimited, or the Limits. One of them is set.
type Plan struct {
	Deny, Unlimited bool
	Limits          []NamedLimit
}

// A Cost says what a request costs. The zero Cost is 1.
type Cost struct {
	Units   int64            // of each request
	From    string           // header:name or attribute:name, of which the value is the cost
	Methods map[string]int64 // by method; "*" is for all others, and is 1 if it is not there
}

// A Source is the database of clients, for who opens it.
type Source struct {
	Database string // its URL: sqlite:… or postgres://…
	Snapshot string // the file from which to start while it is away
	Poll     string // how often to look for changes, a duration
}

// The values of a policy's Mode.
const (
	modeEnforce = "enforce"
	modeShadow  = "shadow"
)

// A ConfigError says what in a configuration makes no sense.
type ConfigError struct {
	File         string // "" if the configuration is not from a file
	Line, Column int    // from 1
	Field        string // such as policies[0].match.path
	Problem      string // what follows the field in the message
}

// Error implements error.
func (e *ConfigError) Error() string {
	if e.File == "" {
		return "weir: " + e.text()
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.text())
}

// text is the message without the place.
func (e *ConfigError) text() string {
	if e.Field == "" {
		return "the configuration " + e.Problem
	}
	return e.Field + " " + e.Problem
}

// A position in a file.
type position struct{ line, column int }

// problems gathers what is wrong, by field.
type problems struct {
	config *Config
	list   []*ConfigError
	fields map[string]bool // that have a problem
	// guesses are fields that hold a name that is not known. Something else is then missing, perhaps: it is not told twice.
	guesses map[string]bool

	warnings []Warning
	regexes  int                 // in paths, so far
	steps    int                 // instructions of these
	noted    map[weir.Limit]bool // units with a note, each as a limit
}

// missing notes that a field is missing.
func (p *problems) missing(field, accepted string) {
	if !p.broken(field) && !p.guesses[parent(field)] {
		p.addf(field, "is missing; accepted: %s", accepted)
	}
}

// addf notes a problem of a field, at the place of the field or of what it would be in.
func (p *problems) addf(field, format string, args ...any) {
	p.atf(p.position(field), field, format, args...)
}

// position returns the place of a field in the file, or the place of its parent.
func (p *problems) position(field string) position {
	pos, ok := p.config.where[field]
	for !ok && field != "" {
		field = parent(field)
		pos, ok = p.config.where[field]
	}
	return pos
}

func (p *problems) atf(pos position, field, format string, args ...any) {
	if p.fields == nil {
		p.fields = map[string]bool{}
	}
	p.fields[field] = true
	p.list = append(p.list, &ConfigError{
		File: p.config.file, Line: pos.line, Column: pos.column, Field: field, Problem: fmt.Sprintf(format, args...),
	})
}

// broken reports whether a field, or what it is in, has a problem already.
func (p *problems) broken(field string) bool {
	for ; field != ""; field = parent(field) {
		if p.fields[field] {
			return true
		}
	}
	return false
}

// parent returns the field that a field is in.
func parent(field string) string { return field[:max(0, strings.LastIndexAny(field, ".["))] }

// err returns all problems as one error, in the order of the file.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *ConfigError) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	var errs []error
	for i, e := range p.list {
		if i == maxShown {
			errs = append(errs, fmt.Errorf("weir: and %d more errors", len(p.list)-maxShown))
			break
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// short shows a text of any length in an error.
func short(text string) string {
	if len(text) > 80 {
		return fmt.Sprintf("%q…", text[:80])
	}
	return fmt.Sprintf("%q", text)
}

// isName reports whether a name can be a policy's or a limit's.
func isName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}
