package access

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

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
