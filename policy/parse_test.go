package policy_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// valid are configurations that are accepted.
var valid = []string{
	issueYAML,
	"policies: []",
	"policies: [{name: a, key: all, limits: 10/1s}]",
	"policies: [{name: a, key: [all], limits: [10/1s]}]",
	"policies: [{name: a, key: all, limits: [5/min, 100/hour, 5/1d, 5/1h30min, 1000/day, concurrent 3 lease=1d]}]",
	`policies:
  - name: everything.of-it_1
    match:
      - {method: GET, path: [/, /x/**, "regex:^/[0-9]+$"], host: ["*.example.com", example.com], client_ip: [10.0.0.0/8, "2001:db8::1"]}
      - {method: [GET, post], header: {X-A: [a, "b*"], x-b: "*"}, query: {q: ""}, attributes: {region: eu-*}, not: [{path: /x}, {method: PUT, header: {X-A: a}}]}
    key: ["header:X-A | cookie:sid", client_ip/24/64, client_ip/56, query:q, attribute:tenant, method, host, path]
    client: header:x-api-key|client_ip
    cost: {GET: 1, POST: 5, "*": 0}
    limits: [{name: minute, limit: "sliding-buckets 100/1m cells=60"}, 10000/month tz=Europe/Berlin anchor=15, concurrent 10 lease=30s]
    plans: {gold: [{name: minute, limit: 1000/1m}], One: 5/1s, no: deny, all: unlimited}
    mode: shadow
    candidate: 10/1s
    on_store_error: local
clients: {database: "sqlite:clients.db", snapshot: /var/lib/weir/clients, poll: 500ms}
`,
	"policies: [{name: a, key: client_ip, candidate: [10/1s], cost: header:X-Cost}]",
	"policies: [{name: a, key: client_ip, limits: [10/1s], on_store_error: local 12.5%}]",
	"policies: [{name: a, key: client_ip, plans: {gold: 10/1s}, cost: attribute:tokens}]",
	"policies: [{name: a, key: client_ip, limits: [10/1s, {name: b, limit: 10/1s}], cost: 9007199254740992}]",
	"policies: [{name: a, key: client_ip, match: {}, limits: [10/1s]}]",
	"policies: [{name: a, key: client_ip, match: [{}], limits: [10/1s]}]",
	"!!map {policies: !!seq [{name: !!str a, key: client_ip, cost: !!int 2, limits: [! 10/1s]}]}",
	"--- \npolicies: [{name: a, key: client_ip, match: {path: '**'}, limits: [10/1s]}]\n...\n",
}

// An invalid configuration, with what its error says. What is wrong with a text that has the right shape is not seen by the schema.
var invalid = []struct {
	text, want string
	shape      bool
}{
	{"", "w.yaml:1:1: the configuration is empty; accepted: policies, such as", false},
	{"# nothing", "w.yaml:1:1: the configuration is empty", false},
	{"{}", "w.yaml:1:1: policies is missing; accepted: a list of policies", true},
	{"[]", "w.yaml:1:1: the configuration is a list; accepted: a mapping of policies, clients", true},
	{"policies:", "w.yaml:1:10: policies is empty; accepted: a list", true},
	{"policies: [}", "w.yaml:1:1: the configuration is not YAML: did not find", false},
	{"policies: []\n---\npolicies: []", "w.yaml:2:1: the configuration is followed by another document; accepted: one", false},
	{"policies: []\npolicies: []", "w.yaml:2:1: policies is there twice; accepted: once, as in line 1", false},
	{"policies: []\n1: 2", "w.yaml:2:1: the configuration has a key that is the number 1; accepted: text", false},
	{"polices: []", `w.yaml:1:1: polices is not known; did you mean "policies"?; accepted: policies, clients`, true},
	{one("limts: [1/1s]"), `w.yaml:1:40: policies[0].limts is not known; did you mean "limits"?; accepted: name, match, key`, true},
	{one("limits: [1/1s], limts: [1/1s]"), `policies[0].limts is not known`, true},
	{one("xyzzy: [1/1s]"), `w.yaml:1:40: policies[0].xyzzy is not known; accepted: name, match`, true},
	{one("match: {pth: /a}"), `w.yaml:1:48: policies[0].match.pth is not known; did you mean "path"?; accepted: method, path`, true},
	{one("match: {not: {not: {path: /a}}}"), `w.yaml:1:54: policies[0].match.not.not is within a not, which has none of its own; accepted: method, path, host,`, true},
	{one("match: {not: {nt: {path: /a}}}"), `policies[0].match.not.nt is not known; `, true},
	{one("limits: [1/1s], match: []"), "policies[0].match is an empty list; accepted: one or more", true},
	{one("limits: [1/1s], match: [{path: /a}, {}]"), "policies[0].match[1] is for all requests, so that the others of the list say nothing; accepted: one or more of method", true},
	{one("limits: [1/1s], match: {not: []}"), "policies[0].match.not is an empty list; accepted: one or more", true},
	{one("limits: [1/1s], match: {not: {}}"), "policies[0].match.not is for all requests, so that the policy is for none; accepted: one or more of method", true},
	{one("limits: [1/1s], match: {not: [{path: /a}, {}]}"), "w.yaml:1:82: policies[0].match.not[1] is for all requests", true},
	{one("limits: [1/1s], match: {not: {header: {}}}"), "policies[0].match.not.header has no names; accepted: one or more, each with a value", true},
	{one("limits: [1/1s], match: {header: {}}"), "policies[0].match.header has no names; accepted: one or more", true},
	{one("limits: [1/1s], match: {query: {}}"), "policies[0].match.query has no names; accepted: one or more", true},
	{one("limits: [1/1s], match: {attributes: {}}"), "policies[0].match.attributes has no names; accepted: one or more", true},
	{one("limits: [1/1s], cost: {GET: 5, get: 1}"), "w.yaml:1:76: policies[0].cost.get is there twice, as methods are in any case; accepted: once", false},
	{one("limits: [1/1s], cost: !foo 5"), "policies[0].cost is tagged !foo; accepted: a whole number", false},
	{one("limits: !foo [1/1s]"), "policies[0].limits is tagged !foo; accepted: a list", false},
	{one("limits: [1/1s], match: !!set {path}"), "policies[0].match is tagged !!set; accepted: a mapping of method", false},
	{one("limits: [1/1s], match: {path: !<tag:example.com,2000:x> /a}"), "policies[0].match.path is tagged tag:example.com,2000:x; accepted: text", false},
	{one("plans: {x: !foo deny}"), "policies[0].plans.x is tagged !foo; accepted: text", false},
	{one("limits: [1/1s], match: {!foo path: /a}"), "policies[0].match has a key that is tagged !foo; accepted: text", false},
	{"policies: []\nclients: {}", "w.yaml:2:10: clients.database is missing; accepted: sqlite:file or postgres", true},
	{one("limits: &a [1/1s], candidate: *a"), "w.yaml:1:70: policies[0].candidate is an alias of YAML; accepted: text", false},
	{one("<<: {limits: [1/1s]}"), "has a key that is", false},
	{one("match: [[]]"), "policies[0].match[0] is a list; accepted: a mapping of method, path", true},
	{one("match: 3"), "policies[0].match is the number 3; accepted: a mapping of", true},
	{one("match: {path: 3}"), `policies[0].match.path is the number 3; accepted: text, which in quotes is "3"`, true},
	{one("match: {path: [a, true]}"), `policies[0].match.path[1] is the truth value true; accepted: text, which in quotes is "true"`, true},
	{one("match: {path: []}"), "policies[0].match.path is an empty list; accepted: one or more", true},
	{one("match: {path: login}"), `policies[0].match.path is "login"; accepted: a path that begins with /`, true},
	{one("match: {path: [/a, /a**]}"), `policies[0].match.path[1] is "/a**"; accepted: ** between slashes`, false},
	{one("match: {path: 'regex:('}"), `policies[0].match.path is "regex:("; accepted: a regular expression of RE2; missing closing ): `, false},
	{one("match: {path: 'regex:a)|(b'}"), "accepted: a regular expression of RE2; unexpected ): ", false},
	{one("match: {method: 'G T'}"), `policies[0].match.method is "G T"; accepted: a method such as GET`, true},
	{one("match: {host: 'a.com:80'}"), `policies[0].match.host is "a.com:80"; accepted: a host without a port`, false},
	{one("match: {host: 'a*.com'}"), `policies[0].match.host is "a*.com"; accepted: a host without`, true},
	{one("match: {client_ip: 10.0.0.0/33}"), `policies[0].match.client_ip is "10.0.0.0/33"; accepted: an address or a CIDR`, false},
	{one("match: {header: {'a b': c}}"), "policies[0].match.header.a b is not the name of a header", true},
	{one("match: {header: {host: c}}"), "a host is matched with host", true},
	{one("match: {not: {path: x}}"), `policies[0].match.not.path is "x"; accepted`, true},
	{"policies: [{key: all, limits: [1/1s]}]", "w.yaml:1:12: policies[0].name is missing; accepted: 1 to 64 of a-z 0-9 . _ -", true},
	{"policies: [{name: A/b, key: all, limits: [1/1s]}]", `w.yaml:1:19: policies[0].name is "A/b"; accepted: 1 to 64 of`, true},
	{"policies: [{name: a, key: all, limits: [1/1s]}, {name: a, key: all, limits: [1/1s]}]", `w.yaml:1:56: policies[1].name is "a", as another's`, false},
	{"policies: [{name: a, limits: [1/1s]}]", "policies[0].key is missing; accepted: a list such as [client_ip], or all", true},
	{"policies: [{name: a, key: [], limits: [1/1s]}]", "policies[0].key is missing; accepted", true},
	{"policies: [{name: a, key: [all, method], limits: [1/1s]}]", "policies[0].key[0] is all beside others", true},
	{"policies: [{name: a, key: [heder:X-A], limits: [1/1s]}]", `policies[0].key[0] has "heder:X-A"; did you mean header:X-A?; accepted: client_ip`, true},
	{"policies: [{name: a, key: ['header:X-A|'], limits: [1/1s]}]", `policies[0].key[0] has ""; accepted`, true},
	{"policies: [{name: a, key: [client_ip/129], limits: [1/1s]}]", `policies[0].key[0] has "client_ip/129"; did`, false},
	{"policies: [{name: a, key: [client_ipp], limits: [1/1s]}]", `did you mean client_ip?`, true},
	{"policies: [{name: a, key: [client_ip, ''], limits: [1/1s]}]", "policies[0].key[1] is empty; accepted: text", true},
	{"policies: [{name: a, key: all}]", "policies[0].limits is missing; accepted: limits such as", true},
	{"policies: [{name: a, key: all, limits: []}]", "policies[0].limits is missing; accepted: limits such as", false},
	{one("limits: [0/1s]"), `policies[0].limits[0] is "0/1s": limit has count 0; accepted: 1 to`, false},
	{one("limits: [1/1s, {limit: 1/1s, name: '7'}]"), `policies[0].limits[1].name is "7"; accepted: 1 to 64`, true},
	{one("limits: [{name: a}]"), "policies[0].limits[0] is", true},
	{one("limits: [{name: a, limit: 1/1s}, {name: a, limit: 2/1s}]"), `policies[0].limits[1] is called "a", as another of the list`, false},
	{one("limits: 12"), "policies[0].limits is the number 12; accepted: text", true},
	{one("limits: [" + strings.Repeat("1/1s, ", 17) + "]"), "policies[0].limits has 17 entries; accepted: at most 16", true},
	{one("plans: {gold: allow}"), `policies[0].plans.gold is "allow"`, true},
	{one("plans: {gold: []}"), "policies[0].plans.gold is not one of limits, deny and unlimited", true},
	{one("plans: {own: deny}"), "policies[0].plans.own is the name of a plan; accepted", true},
	{"policies: [{name: a, key: all, plans: {gold: deny}}]", "policies[0].client is missing, where the key is all", false},
	{one("client: gold"), `policies[0].client has "gold"; accepted`, true},
	{one("cost: -1"), "policies[0].cost is the number -1; accepted: a whole number, 0 to 9007199254740992", true},
	{one("cost: 0"), "policies[0].cost is 0; accepted: 1 or more", true},
	{one("cost: 1.5"), "policies[0].cost is the number 1.5; accepted", true},
	{one("cost: X-Cost"), `policies[0].cost is "X-Cost"; accepted: a number, header:name`, true},
	{one("cost: {}"), "policies[0].cost has no methods; accepted", true},
	{one("cost: {GET: -1}"), "policies[0].cost.GET is the number -1; accepted", true},
	{one("mode: shadwo"), `policies[0].mode is "shadwo"; did you mean shadow?; accepted: enforce, shadow`, true},
	{one("on_store_error: fail"), `policies[0].on_store_error is "fail"; accepted: deny, allow, local, local 25%`, true},
	{one("on_store_error: locale"), `policies[0].on_store_error is "locale"; did you mean local?; accepted: deny, allow, local, local 25%`, true},
	{one("on_store_error: local 25"), `policies[0].on_store_error is "local 25"; did you mean local 25%?; accepted`, true},
	{one("on_store_error: local 0%"), `policies[0].on_store_error is "local 0%"; `, false},
	{one("on_store_error: local 1000%"), `policies[0].on_store_error is "local 1000%"; `, true},
	{"policies: []\nclients: {database: 'mysql://user:secret@h/d'}", "w.yaml:2:21: clients.database is of no known kind; accepted: sqlite:file", true},
	{"policies: []\nclients: {database: 'sqlite:f', poll: 1ms}", `clients.poll is "1ms"; accepted: a duration of 100ms to 1h`, false},
	{"policies: []\nclients: {snapshot: s}", "clients.database is missing", true},
}

// one is a configuration of one policy, whose key and more stand before what is given.
func one(rest string) string { return "policies: [{name: a, key: [client_ip], " + rest + "}]" }

func TestParse(t *testing.T) {
	for _, text := range valid {
		c, err := policy.Parse([]byte(text), "w.yaml")
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		if _, err := policy.New(c, policy.Options{}); err != nil {
			t.Errorf("%s\nis parsed, and then refused: %v", text, err)
		}
	}
	for _, c := range invalid {
		got, err := policy.Parse([]byte(c.text), "w.yaml")
		if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nerror  %v\nwant   %s", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: shows a password", err)
		}
	}
}

func TestParseTellsAllThatIsWrong(t *testing.T) {
	var b strings.Builder
	b.WriteString("policies:\n")
	for i := range 30 {
		fmt.Fprintf(&b, "  - {name: p%d, key: [client_ip], limits: [0/1s], mode: x}\n", i)
	}
	_, err := policy.Parse([]byte(b.String()), "w.yaml")
	var first *policy.ConfigError
	if !errors.As(err, &first) || *first != (policy.ConfigError{"w.yaml", 2, 43, "policies[0].limits[0]", first.Problem}) {
		t.Errorf("the first error is %+v", first)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 21 || lines[20] != "weir: and 40 more errors" {
		t.Errorf("there are %d lines, the last %q; want 20 errors and the number of the others", len(lines), lines[len(lines)-1])
	}
	if !strings.HasPrefix(lines[1], `w.yaml:2:56: policies[0].mode`) || !strings.HasPrefix(lines[2], "w.yaml:3:43: policies[1]") {
		t.Errorf("the errors are not in the order of the file:\n%v", err)
	}
}

func TestParseIsBounded(t *testing.T) {
	for _, text := range []string{
		"policies: []" + strings.Repeat(" ", 1<<20),
		"policies: " + strings.Repeat("[", 1<<19),
		"policies: [" + strings.Repeat("{}, ", 10_001) + "]",
		one("match: {path: /" + strings.Repeat("a", 600) + "}"),
		one("match: {header: {X: " + strings.Repeat("a", 1100) + "}}"),
		one("match: {path: 'regex:((a{900}){900})'}"),
		one("key: [" + strings.Repeat("client_ip, ", 9) + "]"),
		"policies: [{name: a, limits: [1/1s], key: ['" + strings.Repeat("client_ip|", 9) + "method']}]",
	} {
		if _, err := policy.Parse([]byte(text), ""); err == nil || len(err.Error()) > 10_000 {
			t.Errorf("%.60s…: error of %d bytes", text, len(fmt.Sprint(err)))
		}
	}
}

// A configuration can be written in Go, and is held to the same.
func TestNewChecksWhatGoSays(t *testing.T) {
	for want, c := range map[string]policy.Policy{
		"weir: policies[0].key is missing":                                   {Name: "a", Limits: limits("1/1s")},
		`weir: policies[0].match[0].path[0] is "x"`:                          {Name: "a", Key: []string{"all"}, Limits: limits("1/1s"), Match: []policy.Match{{Path: []string{"x"}}}},
		"weir: policies[0].match[0].not[0].not is within a not":              {Name: "a", Key: []string{"all"}, Limits: limits("1/1s"), Match: []policy.Match{{Not: []policy.Match{{Not: []policy.Match{{}}}}}}},
		"weir: policies[0].plans.x is not one of limits, deny and unlimited": {Name: "a", Key: []string{"method"}, Plans: map[string]policy.Plan{"x": {Deny: true, Limits: limits("1/1s")}}},
		"weir: policies[0].cost says more than one":                          {Name: "a", Key: []string{"all"}, Limits: limits("1/1s"), Cost: policy.Cost{Units: 1, From: "header:X"}},
		"weir: policies[0].cost is -1; accepted: 0 to":                       {Name: "a", Key: []string{"all"}, Limits: limits("1/1s"), Cost: policy.Cost{Units: -1}},
	} {
		if _, err := policy.New(&policy.Config{Policies: []policy.Policy{c}}, policy.Options{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	}
}

func limits(texts ...string) (list []policy.NamedLimit) {
	for _, text := range texts {
		list = append(list, policy.NamedLimit{Limit: text})
	}
	return list
}

func TestLoadSaysWhatIsWrongWithTheFile(t *testing.T) {
	name := t.TempDir() + "/weir.yaml"
	if _, err := policy.Load(t.Context(), name, policy.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file the error is %v", err)
	}
	if err := os.WriteFile(name, []byte(one("mode: x, limits: [1/1s]")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Load(t.Context(), name, policy.Options{}); err == nil || !strings.HasPrefix(err.Error(), name+":1:46: policies[0].mode is") {
		t.Errorf("error %v does not begin with the place in %s", err, name)
	}
}

// FuzzParse parses texts, and decides and explains a request by the valid texts.
//
//	go test ./policy -run '^$' -fuzz 'FuzzParse$' -fuzzminimizetime 10x
//
// Without -fuzzminimizetime the engine spends up to a minute on making each new text shorter, in
// which it tries no other: it ran 16 texts a second, and runs thousands with it.
func FuzzParse(f *testing.F) {
	for _, text := range valid {
		f.Add(text)
	}
	for _, c := range invalid {
		f.Add(c.text)
	}
	r := request("GET /api/x", "tenant=t", "user=u")
	r.Host, r.RawQuery = "api.example.com", "q=1&b=%61"
	r.Header = http.Header{"X-Api-Key": {"k"}, "Cookie": {"sid=1"}}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<13 { // longer texts find nothing more
			return
		}
		c, err := policy.Parse([]byte(text), "w.yaml")
		if err != nil {
			if c != nil || !strings.HasPrefix(err.Error(), "w.yaml:") {
				t.Fatalf("configuration %v, error %v", c, err)
			}
			return
		}
		s, err := policy.New(c, policy.Options{})
		if err != nil {
			t.Fatalf("it is parsed, and then refused: %v", err)
		}
		for _, w := range s.Warnings() {
			if !strings.HasPrefix(w.String(), "w.yaml:") || w.Line == 0 {
				t.Fatalf("a warning without a place: %s", w.String())
			}
		}
		var wrong *policy.RequestError
		d, err := s.Check(t.Context(), r)
		if err != nil && !errors.As(err, &wrong) {
			t.Fatalf("a request is not decided: %v", err)
		}
		x, explained := s.Explain(t.Context(), r)
		if (explained == nil) != (err == nil) || err == nil && len(x.Policies) != len(c.Policies) {
			t.Fatalf("decided with the error %v as %+v, explained with the error %v as %+v", err, d, explained, x)
		}
	})
}
