package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weirlimit/weir/internal/follow"
	"github.com/weirlimit/weir/internal/nearest"
)

// Parse reads a configuration in YAML. name is the file's, for errors. Nothing that it does not know is passed over, and nothing is guessed: the
// error joins up to 20 of [*ConfigError], all that is wrong, each with its line and column.
func Parse(data []byte, name string) (*Config, error) {
	if name == "" {
		name = "weir.yaml"
	}
	r := reader{problems{guesses: map[string]bool{}, config: &Config{file: name, sum: follow.Digest(data, nil), where: map[string]position{}}}}
	if root := r.document(data); root != nil {
		r.config.where[""] = position{root.Line, root.Column}
		r.root(root)
		compile(r.config, &r.problems)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.config, nil
}

// A reader makes a Config of YAML's nodes. It checks their shapes; what they say is checked by compile.
type reader struct{ problems }

// What each mapping may hold.
var (
	rootKeys    = []string{"policies", "clients"}
	sourceKeys  = []string{"database", "snapshot", "poll"}
	policyKeys  = []string{"name", "match", "key", "client", "cost", "limits", "plans", "mode", "candidate", "on_store_error"}
	matchKeys   = []string{"method", "path", "host", "client_ip", "header", "query", "attributes", "not"}
	excludeKeys = matchKeys[:len(matchKeys)-1]
	limitKeys   = []string{"name", "limit"}
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// document returns the root of the one document in the data.
func (r *reader) document(data []byte) *yaml.Node {
	if len(data) > maxFile {
		r.atf(position{1, 1}, "", "is of %d bytes; accepted: at most %d", len(data), maxFile)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := d.Decode(&document)
	if err == nil {
		if err = d.Decode(&second); err == nil {
			r.atf(position{second.Line, second.Column}, "", "is followed by another document; accepted: one")
			return nil
		}
	} else if errors.Is(err, io.EOF) {
		r.atf(position{1, 1}, "", "is empty; accepted: policies, such as policies: [{name: api, key: [client_ip], limits: [100/1m]}]")
		return nil
	}
	if !errors.Is(err, io.EOF) {
		text := err.Error()
		found := yamlLine.FindStringSubmatch(text)
		line := 1
		if len(found) > 1 && found[1] != "" {
			line, _ = strconv.Atoi(found[1])
		}
		r.atf(position{line, 1}, "", "is not YAML: %s", yamlLine.ReplaceAllString(text, ""))
		return nil
	}
	return document.Content[0]
}

func (r *reader) root(n *yaml.Node) {
	r.mapping(n, "", rootKeys, func(key, field string, n *yaml.Node) {
		if key == "clients" {
			r.source(n, field)
			return
		}
		for i, n := range r.sequence(n, field, maxPolicies) {
			r.config.Policies = append(r.config.Policies, r.policy(n, at(field, i)))
		}
	})
	if _, ok := r.config.where["policies"]; !ok {
		r.missing("policies", "a list of policies, such as [{name: api, key: [client_ip], limits: [100/1m]}]")
	}
}

func (r *reader) source(n *yaml.Node, field string) {
	c := &r.config.Clients
	r.mapping(n, field, sourceKeys, func(key, field string, n *yaml.Node) {
		*map[string]*string{"database": &c.Database, "snapshot": &c.Snapshot, "poll": &c.Poll}[key] = r.text(n, field)
	})
	if _, ok := r.config.where[field+".database"]; !ok {
		r.missing(field+".database", databasesTaken)
	}
}

func (r *reader) policy(n *yaml.Node, field string) (p Policy) {
	r.mapping(n, field, policyKeys, func(key, field string, n *yaml.Node) {
		switch key {
		case "name":
			p.Name = r.text(n, field)
		case "match":
			p.Match = r.matches(n, field, matchKeys)
		case "key":
			p.Key = r.texts(n, field)
		case "client":
			p.Client = r.text(n, field)
		case "cost":
			p.Cost = r.cost(n, field)
		case "limits":
			p.Limits = r.limits(n, field)
		case "plans":
			p.Plans = r.plans(n, field)
		case "mode":
			p.Mode = r.text(n, field)
		case "candidate":
			p.Candidate = r.limits(n, field)
		case "on_store_error":
			p.OnStoreError = r.text(n, field)
		}
	})
	return p
}

func (r *reader) matches(n *yaml.Node, field string, keys []string) (matches []Match) {
	if n.Kind != yaml.SequenceNode {
		return []Match{r.match(n, field, keys)}
	}
	for i, n := range r.sequence(n, field, maxList) {
		matches = append(matches, r.match(n, at(field, i), keys))
	}
	if len(matches) == 0 && !r.broken(field) {
		r.addf(field, "is an empty list; accepted: one or more")
	}
	return matches
}

func (r *reader) match(n *yaml.Node, field string, keys []string) (m Match) {
	r.mapping(n, field, keys, func(key, field string, n *yaml.Node) {
		switch key {
		case "method":
			m.Method = r.texts(n, field)
		case "path":
			m.Path = r.texts(n, field)
		case "host":
			m.Host = r.texts(n, field)
		case "client_ip":
			m.ClientIP = r.texts(n, field)
		case "header":
			m.Header = r.values(n, field)
		case "query":
			m.Query = r.values(n, field)
		case "attributes":
			m.Attributes = r.values(n, field)
		case "not":
			m.Not = r.matches(n, field, excludeKeys)
		}
	})
	return m
}

func (r *reader) values(n *yaml.Node, field string) map[string][]string {
	values := map[string][]string{}
	r.mapping(n, field, nil, func(key, field string, n *yaml.Node) { values[key] = r.list(n, field, r.value) })
	return values
}

func (r *reader) cost(n *yaml.Node, field string) (c Cost) {
	switch {
	case n.Kind == yaml.MappingNode:
		c.Methods = map[string]int64{}
		r.mapping(n, field, nil, func(key, field string, n *yaml.Node) { c.Methods[key] = r.number(n, field) })
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		c.From = r.text(n, field)
	default:
		if c.Units = r.number(n, field); c.Units == 0 && !r.broken(field) {
			r.addf(field, "is 0; accepted: 1 or more, a header or attribute such as header:X-Cost, or a number for each method")
		}
	}
	return c
}

func (r *reader) limits(n *yaml.Node, field string) (limits []NamedLimit) {
	if n.Kind != yaml.SequenceNode {
		return []NamedLimit{r.limit(n, field)}
	}
	for i, n := range r.sequence(n, field, maxLimits) {
		limits = append(limits, r.limit(n, at(field, i)))
	}
	return limits
}

func (r *reader) limit(n *yaml.Node, field string) (l NamedLimit) {
	if n.Kind != yaml.MappingNode {
		l.Limit = r.text(n, field)
		return l
	}
	r.mapping(n, field, limitKeys, func(key, field string, n *yaml.Node) {
		if key == "name" {
			l.Name = r.text(n, field)
		} else {
			l.Limit = r.text(n, field)
		}
	})
	return l
}

func (r *reader) plans(n *yaml.Node, field string) map[string]Plan {
	plans := map[string]Plan{}
	r.mapping(n, field, nil, func(key, field string, n *yaml.Node) {
		word := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
		switch {
		case word && n.Value == planDeny:
			plans[key] = Plan{Deny: true}
		case word && n.Value == planUnlimited:
			plans[key] = Plan{Unlimited: true}
		default:
			plans[key] = Plan{Limits: r.limits(n, field)}
		}
	})
	return plans
}

// mapping calls f for each key of a mapping; known are those that it may have, nil for any.
func (r *reader) mapping(n *yaml.Node, field string, known []string, f func(key, field string, n *yaml.Node)) {
	r.config.where[field] = position{n.Line, n.Column}
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		accepted := "names with values"
		if known != nil {
			accepted = strings.Join(known, ", ")
		}
		r.addf(field, "is %s; accepted: a mapping of %s", kind(n), accepted)
		return
	}
	if known == nil && len(n.Content) > 2*maxPlans {
		r.addf(field, "has %d names; accepted: at most %d", len(n.Content)/2, maxPlans)
		return
	}
	seen := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
			r.atf(position{k.Line, k.Column}, field, "has a key that is %s; accepted: text", kind(k))
			continue
		}
		inner := strings.TrimPrefix(field+"."+bounded(k.Value), ".")
		switch line, twice := seen[k.Value]; {
		case twice:
			r.atf(position{k.Line, k.Column}, inner, "is there twice; accepted: once, as in line %d", line)
		case known != nil && !slices.Contains(known, k.Value):
			r.guesses[field] = true
			r.atf(position{k.Line, k.Column}, inner, "%s; accepted: %s", unknown(k.Value, known), strings.Join(known, ", "))
		default:
			f(k.Value, inner, value)
		}
		seen[k.Value] = k.Line
	}
}

// unknown says that a name is none of the known ones.
func unknown(name string, known []string) string {
	if name == "not" && slices.Equal(known, excludeKeys) {
		return notWithinNot
	}
	if near := nearest.Of(name, known); near != "" {
		return fmt.Sprintf("is not known; did you mean %q?", near)
	}
	return "is not known"
}

func (r *reader) sequence(n *yaml.Node, field string, most int) []*yaml.Node {
	r.config.where[field] = position{n.Line, n.Column}
	switch {
	case n.Kind != yaml.SequenceNode || n.ShortTag() != "!!seq":
		r.addf(field, "is %s; accepted: a list", kind(n))
		return nil
	case len(n.Content) > most:
		r.addf(field, "has %d entries; accepted: at most %d", len(n.Content), most)
		return nil
	}
	return n.Content
}

// texts reads a text, or a list of them.
func (r *reader) texts(n *yaml.Node, field string) []string { return r.list(n, field, r.text) }

// list reads an entry, or a list of them. An empty list is one.
func (r *reader) list(n *yaml.Node, field string, read func(*yaml.Node, string) string) []string {
	if n.Kind != yaml.SequenceNode {
		return []string{read(n, field)}
	}
	list := []string{}
	for i, n := range r.sequence(n, field, maxList) {
		list = append(list, read(n, at(field, i)))
	}
	return list
}

// text reads a text that is not empty.
func (r *reader) text(n *yaml.Node, field string) string {
	text := r.value(n, field)
	if text == "" && !r.broken(field) {
		r.addf(field, "is empty; accepted: text")
	}
	return text
}

func (r *reader) value(n *yaml.Node, field string) string {
	r.config.where[field] = position{n.Line, n.Column}
	switch {
	case n.Kind != yaml.ScalarNode:
		r.addf(field, "is %s; accepted: text", kind(n))
	case n.ShortTag() == "!!null":
		r.addf(field, "is empty; accepted: text")
	case tagged(n):
		r.addf(field, "is %s; accepted: text", kind(n))
	case n.ShortTag() != "!!str":
		r.addf(field, "is %s; accepted: text, which in quotes is \"%s\"", kind(n), bounded(n.Value))
	case len(n.Value) > maxText:
		r.addf(field, "is of %d bytes; accepted: at most %d", len(n.Value), maxText)
	default:
		return n.Value
	}
	return ""
}

func (r *reader) number(n *yaml.Node, field string) int64 {
	r.config.where[field] = position{n.Line, n.Column}
	v, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil || v < 0 || v > MaxCost {
		r.addf(field, "is %s; accepted: a whole number, 0 to %d", kind(n), MaxCost)
		return 0
	}
	return v
}

// tagged reports whether a node has a tag of its own, which says that it is not what it looks like.
func tagged(n *yaml.Node) bool {
	tags := map[yaml.Kind][]string{
		yaml.MappingNode: {"!!map"}, yaml.SequenceNode: {"!!seq"},
		yaml.ScalarNode: {"!!str", "!!null", "!!int", "!!float", "!!bool", "!!timestamp", "!!merge"},
	}[n.Kind]
	return tags != nil && !slices.Contains(tags, n.ShortTag())
}

// kind shows a node in an error.
func kind(n *yaml.Node) string {
	switch {
	case tagged(n):
		return "tagged " + bounded(n.ShortTag())
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias of YAML"
	}
	kinds := map[string]string{"!!null": "empty", "!!int": "the number ", "!!float": "the number ", "!!bool": "the truth value "}
	switch name, ok := kinds[n.ShortTag()]; {
	case n.ShortTag() == "!!null":
		return name
	case ok:
		return name + bounded(n.Value)
	}
	return short(n.Value)
}

func bounded(text string) string {
	if len(text) > 80 {
		return text[:80] + "…"
	}
	return text
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
