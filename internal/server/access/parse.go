package access

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds on a users file.
const (
	maxFile     = 4 << 20 // bytes
	maxUsers    = 10_000
	maxName     = 64  // bytes of a user's name
	maxPatterns = 64  // of one user
	maxPattern  = 256 // bytes
	maxSecrets  = 2   // of one user: the old and the new
	maxCerts    = 8   // of one user
	maxProblems = 10  // that one error lists
)

const (
	// NameAccepted describes the names of users.
	NameAccepted = "1 to 64 letters, digits and . _ - @ + /"

	userAccepted    = "user NAME on|off [#HASH …] [cert:cn|dns|uri|email:NAME …] [+RIGHT …] [~policy:PATTERN ~name:PATTERN ~key:PATTERN …], and lines that begin with #"
	wordAccepted    = "#HASH, cert:KIND:NAME, +take, +check, +refund, +admin, +@all, ~policy:PATTERN, ~name:PATTERN, ~key:PATTERN, ~*"
	patternAccepted = "a text of up to 256 bytes, or a prefix with * at its end"
	certAccepted    = "cert:cn:NAME, cert:dns:NAME, cert:uri:URI, cert:email:ADDRESS"
)

// A LineError is an invalid field of a users file.
type LineError struct {
	File   string
	Line   int // from 1
	Field  string
	Value  string // without secrets
	Accept string
}

// Error implements error.
func (p *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s %s; accepted: %s", p.File, p.Line, p.Field, p.Value, p.Accept)
}

// A FileError lists the problems of a users file, the first ten.
type FileError []*LineError

// Error implements error. It has a line for each problem.
func (e FileError) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// A Table is the content of a users file. It does not change, and may be used by many goroutines at
// once. The zero value has no users.
type Table struct {
	users  map[string]*User
	certs  map[Identity]*User
	decoys []*User // have secrets
}

// Len returns the number of users.
func (t *Table) Len() int { return len(t.users) }

// User returns the user of a name, or nil.
func (t *Table) User(name string) *User { return t.users[name] }

// Parse parses a users file. name is the name of the file in errors. The error is a FileError.
//
// A line defines a user. Empty lines, and lines that begin with #, have no meaning:
//
//	user NAME on|off [#HASH …] [cert:KIND:NAME …] [+RIGHT …] [~KIND:PATTERN …]
//
// A HASH is a hash of a secret, as [Hash] makes it. Rights are closed: a user has the rights that
// are listed, on the names and keys that a pattern matches.
func Parse(data []byte, name string) (*Table, error) {
	p := &parser{file: name, table: &Table{users: map[string]*User{}, certs: map[Identity]*User{}}}
	if len(data) > maxFile {
		p.line = 1
		p.refuse("file", "has more than "+strconv.Itoa(maxFile)+" bytes", "up to "+strconv.Itoa(maxFile))
		return nil, p.problems
	}
	for line := range bytes.Lines(data) {
		if p.line++; len(p.problems) == maxProblems {
			break
		}
		if !utf8.Valid(line) {
			p.refuse("line", "is not UTF-8", "text in UTF-8")
			continue
		}
		if words := strings.Fields(string(line)); len(words) > 0 && words[0][0] != '#' {
			p.user(words)
		}
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return p.table, nil
}

type parser struct {
	file     string
	line     int
	table    *Table
	problems FileError
}

func (p *parser) refuse(field, value, accept string) {
	p.problems = append(p.problems, &LineError{p.file, p.line, field, value, accept})
}

// user adds the user of a line.
func (p *parser) user(words []string) {
	switch {
	case words[0] != "user":
		p.refuse("line", "begins with "+partly(words[0]), userAccepted)
		return
	case len(words) < 3:
		p.refuse("line", "ends early", userAccepted)
		return
	case !validName(words[1]):
		p.refuse("user", quote(words[1]), NameAccepted)
		return
	case p.table.users[words[1]] != nil:
		p.refuse("user", words[1]+" is defined twice", "each name once")
		return
	case len(p.table.users) == maxUsers:
		p.refuse("file", "has more than "+strconv.Itoa(maxUsers)+" users", "up to "+strconv.Itoa(maxUsers))
		return
	}
	e := &entry{parser: p, user: &User{name: words[1]}, seen: map[string]bool{}}
	switch words[2] {
	case "on":
		e.user.on = true
	case "off":
	default:
		p.refuse("user "+words[1], "has "+partly(words[2])+" after the name", "on, off")
		return
	}
	for _, word := range words[3:] {
		if len(p.problems) < maxProblems {
			e.word(word)
		}
	}
	e.finish()
}

// An entry is a line of a user.
type entry struct {
	*parser

	user                  *User
	seen                  map[string]bool
	names, policies, keys []string
	everything            bool // ~*
}

func (e *entry) refuse(value, accept string) { e.parser.refuse("user "+e.user.name, value, accept) }

func (e *entry) word(word string) {
	if e.seen[word] {
		e.refuse("has "+partly(word)+" twice", "each word once")
		return
	}
	e.seen[word] = true
	switch {
	case word[0] == '#':
		e.secret(word[1:])
	case strings.HasPrefix(word, "cert:"):
		e.cert(word)
	case word == "+@all":
		e.user.rights |= All
	case word[0] == '+':
		right, ok := ParseRight(word[1:])
		if !ok {
			e.refuse("has the right "+quote(word), "+take, +check, +refund, +admin, +@all")
		}
		if ok {
			e.user.rights |= right
		}
	case word == "~*":
		e.everything = true
	case word[0] == '~':
		e.pattern(word)
	case word[0] == '>':
		e.refuse("has a secret in clear text", "#HASH, as weir users add makes it")
	default:
		e.refuse("has "+partly(word), wordAccepted)
	}
}

func (e *entry) secret(text string) {
	h, ok := parseHash(text)
	switch {
	case !ok:
		e.refuse("has a hash of unknown form or strength", HashAccepted)
	case len(e.user.secrets) == maxSecrets:
		e.refuse("has more than "+strconv.Itoa(maxSecrets)+" hashes", "up to "+strconv.Itoa(maxSecrets)+", the old and the new")
	default:
		e.user.secrets = append(e.user.secrets, &secret{hash: h})
	}
}

func (e *entry) cert(word string) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(word, "cert:"), ":")
	id := newIdentity(kind, name)
	switch owner := e.table.certs[id]; {
	case name == "" || !slices.Contains(identityKinds, kind):
		e.refuse("has "+quote(word), certAccepted)
	case owner != nil && owner != e.user:
		e.refuse("has "+quote(word)+", which user "+owner.name+" has", "each name of a certificate for one user")
	case len(e.user.certs) == maxCerts:
		e.refuse("has more than "+strconv.Itoa(maxCerts)+" names of certificates", "up to "+strconv.Itoa(maxCerts))
	default:
		e.user.certs = append(e.user.certs, id)
		e.table.certs[id] = e.user
	}
}

func (e *entry) pattern(word string) {
	kind, text, found := strings.Cut(word[1:], ":")
	list := map[string]*[]string{"policy": &e.policies, "name": &e.names, "key": &e.keys}[kind]
	star := strings.IndexByte(text, '*')
	switch {
	case !found || list == nil:
		e.refuse("has the pattern "+partly(word), "~policy:PATTERN, ~name:PATTERN, ~key:PATTERN, ~*")
	case len(text) > maxPattern || star >= 0 && star < len(text)-1:
		e.refuse("has the pattern "+quote(word), patternAccepted)
	case len(e.policies)+len(e.names)+len(e.keys) == maxPatterns:
		e.refuse("has more than "+strconv.Itoa(maxPatterns)+" patterns", "up to "+strconv.Itoa(maxPatterns))
	default:
		*list = append(*list, text)
	}
}

// finish adds the user, if the words make sense together.
func (e *entry) finish() {
	u := e.user
	if u.on && len(u.secrets)+len(u.certs) == 0 {
		e.refuse("has neither a secret nor a certificate", "#HASH, "+certAccepted+", or off")
	}
	if e.everything {
		if len(e.policies)+len(e.names)+len(e.keys) > 0 {
			e.refuse("has ~* and other patterns", "~* alone, which covers them")
		}
		e.policies, e.names, e.keys = []string{"*"}, []string{"*"}, []string{"*"}
	} else {
		e.goTogether("policy", e.policies, Check)
		e.goTogether("name", e.names, Take|Refund)
		e.goTogether("key", e.keys, Take|Refund|Check)
	}
	u.policies, u.names, u.keys = newPatterns(e.policies), newPatterns(e.names), newPatterns(e.keys)
	e.table.users[u.name] = u
	if len(u.secrets) > 0 {
		e.table.decoys = append(e.table.decoys, u)
	}
}

// goTogether refuses rights without a pattern of the kind that they need, and patterns without such
// a right.
func (e *entry) goTogether(kind string, texts []string, rights Right) {
	has := e.user.rights & rights
	switch {
	case has != 0 && len(texts) == 0:
		e.refuse("has the right "+has.String()+", and no ~"+kind+": pattern", "~"+kind+":PATTERN, or ~* for everything")
	case has == 0 && len(texts) > 0:
		e.refuse("has ~"+kind+": patterns, and no right that they apply to", "one of the rights "+rights.String())
	}
}

func validName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-@+/", r)
	})
}

// quote returns a value for an error, cut to a readable length.
func quote(value string) string {
	if len(value) > maxName {
		value = strings.ToValidUTF8(value[:maxName], "") + "…"
	}
	return strconv.Quote(value)
}

// partly returns the beginning of a word that may be a secret.
func partly(word string) string {
	const shown = 3
	runes := []rune(word)
	if len(runes) <= 2*shown {
		return "a word of " + strconv.Itoa(len(runes)) + " characters"
	}
	return quote(string(runes[:shown]) + "…")
}
