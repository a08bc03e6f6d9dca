package access

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A User is an entry of a users file. It does not change, and may be used by many goroutines at
// once.
type User struct {
	name    string
	on      bool
	rights  Right
	secrets []*secret
	certs   []Identity

	names, policies, keys patterns
}

// Name returns the name of the user.
func (u *User) Name() string { return u.name }

// May reports whether the user may use a verb of the right on a key. name is the policy for Check,
// and the name of the limiter for Take and Refund, empty for a limit without a name. Admin and None
// have neither a name nor a key. A nil User may do nothing.
func (u *User) May(right Right, name, key string) bool {
	switch {
	case u == nil || u.rights&right != right:
		return false
	case right == Take || right == Refund:
		return u.names.match(name) && u.keys.match(key)
	case right == Check:
		return u.policies.match(name) && u.keys.match(key)
	}
	return true
}

// Has reports whether the user has a right on any name and key.
func (u *User) Has(right Right) bool { return u != nil && u.rights&right == right }

// A Right is a group of verbs, or a set of such groups.
type Right uint8

// The rights. A user without a right may not use its verbs.
const (
	// Take covers takes, reservations, leases and peeks, of limits that requests name.
	Take Right = 1 << iota
	// Check covers checks by policies, and the settlement of their tokens.
	Check
	// Refund covers refunds, resets and cancellations.
	Refund
	// Admin covers metrics, status, explain, profiles and the list of connections.
	Admin

	// None is the right of verbs that every user may use.
	None Right = 0
	// All are all rights.
	All = Take | Check | Refund | Admin
)

// rightNames are the words of the rights, in the order of the bits.
var rightNames = [...]string{"take", "check", "refund", "admin"}

// Rights is the list of the accepted rights.
const Rights = "take, check, refund, admin"

// String returns the word of the right.
func (r Right) String() string {
	var words []string
	for i, word := range rightNames {
		if r&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// ParseRight returns the right of a word, or false.
func ParseRight(word string) (Right, bool) {
	i := slices.Index(rightNames[:], word)
	return 1 << max(i, 0), i >= 0
}

// Names returns the names of the users, in order.
func (t *Table) Names() []string {
	names := make([]string, 0, len(t.users))
	for name := range t.users {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Describe returns the line of the user without the hashes of secrets, which it only counts.
func (u *User) Describe() string {
	words := []string{"user " + u.name, "off"}
	if u.on {
		words[1] = "on"
	}
	if n := len(u.secrets); n > 0 {
		words = append(words, strconv.Itoa(n)+" secret"+plural(n))
	}
	for _, id := range u.certs {
		words = append(words, "cert:"+id.Kind+":"+id.Name)
	}
	for i, name := range rightNames {
		if u.rights&(1<<i) != 0 {
			words = append(words, "+"+name)
		}
	}
	for _, p := range []struct {
		kind string
		of   *patterns
	}{{"policy", &u.policies}, {"name", &u.names}, {"key", &u.keys}} {
		words = append(words, p.of.words(p.kind)...)
	}
	return strings.Join(words, " ")
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// words returns the patterns as a users file has them.
func (p *patterns) words(kind string) (words []string) {
	if p.all {
		return []string{"~" + kind + ":*"}
	}
	for _, each := range p.list {
		text := each.text
		if each.prefix {
			text += "*"
		}
		words = append(words, "~"+kind+":"+text)
	}
	return words
}

// Explain returns the result of May with the reason.
func (u *User) Explain(right Right, name, key string) (may bool, why string) {
	kind, of := "name", &u.names
	if right == Check {
		kind, of = "policy", &u.policies
	}
	matches := func(kind string, p *patterns, text string) string {
		return "no pattern matches the " + kind + " " + strconv.Quote(text) + ": " + cmp.Or(strings.Join(p.words(kind), " "), "there is none")
	}
	switch {
	case u.rights&right != right:
		return false, "user " + u.name + " does not have the right " + right.String()
	case right&(Take|Check|Refund) == 0:
	case !of.match(name):
		return false, matches(kind, of, name)
	case !u.keys.match(key):
		return false, matches("key", &u.keys, key)
	}
	if !u.on {
		return u.May(right, name, key), "yes, but user " + u.name + " is off, and cannot log in"
	}
	return u.May(right, name, key), "yes"
}
