package policy_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

func warningsOf(t *testing.T, text string) []policy.Warning {
	t.Helper()
	c, err := policy.Parse([]byte(text), "w.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.New(c, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Warnings()
}

// A policy that a client avoids, or whose budget a client renews, by a field of its choice has a
// warning.
func TestWarningsOfFieldsThatClientsChoose(t *testing.T) {
	const companion = `, {name: b, match: {path: "/api/**"}, key: client_ip, limits: [9/1s]}`
	for _, c := range []struct{ policies, want string }{
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: {header: {X-Internal: "*"}}}}`, "policies[0].match.not excludes requests by a field that every client can send"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: [{path: /x}, {query: {dry: "1"}}]}}`, "policies[0].match.not[1] excludes"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: {host: internal.example.com}}}`, "policies[0].match.not excludes"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: {client_ip: 10.0.0.0/8, header: {X-Internal: "*"}}}}`, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: {attributes: {internal: "yes"}}}}`, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {not: {path: /health}}}`, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {path: /api/x, not: {header: {X-Internal: "*"}}}}` + companion, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {header: {X-Beta: "1"}}}`, "policies[0].match.header.X-Beta is chosen by the client"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {query: {beta: "1"}}}`, "policies[0].match.query.beta is chosen by the client"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {host: a.example.com}}`, "policies[0].match.host is chosen by the client, unless the server refuses all other hosts"},
		{`{name: a, key: client_ip, limits: [1/1s], match: {path: /api/x, host: a.example.com}}` + companion, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {path: "regex:/(?:x|a){0,80}.*"}}`, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {path: ["regex:/a", "regex:/(?:.?x?){200}"]}}`, "policies[0].match.path[1] brings the regular expressions of the file to 811"},
		{`{name: a, key: client_ip, limits: [1/1s], match: [{path: /a}, {path: /a, query: {beta: "1"}}]}`, ""},
		{`{name: a, key: client_ip, limits: [1/1s], match: {path: "/api/x*", header: {X-Beta: "1"}}}` + companion, ""},
		{`{name: a, key: [client_ip, "header:X-User"], limits: [1/1s]}`, "policies[0].key[1] has header:X-User, which the client chooses"},
		{`{name: a, key: "cookie:sid", limits: [1/1s]}`, "policies[0].key has"},
		{`{name: a, key: "query:user|client_ip", limits: [1/1s]}`, "policies[0].key has query:user"},
		{`{name: a, key: [host], limits: [1/1s]}`, "policies[0].key[0] has host"},
		{`{name: a, match: {method: [GET, POST]}, key: [client_ip, method, path, "attribute:user"], limits: [1/1s]}`, ""},
		{`{name: a, key: [client_ip, method], limits: [1/1s]}`, "policies[0].key[1] has method, which the client chooses: each value has a budget of its own; accepted without a warning: a match that lists the methods"},
		{`{name: a, match: [{method: PUT}, {path: /x}], key: [method], limits: [1/1s]}`, "policies[0].key[0] has method"},
		{`{name: a, match: {path: /api/x}, key: [client_ip, method], limits: [1/1s]}` + companion, ""},
		{`{name: a, key: ["header:X-Key"], limits: [1/1s]}, {name: b, match: {method: POST}, key: [client_ip, method], limits: [9/1s]}`, "policies[0].key[0] has header"},
		{`{name: a, key: ["hash:host"], limits: [1/1s]}`, "policies[0].key[0] has hash:host"},
		{`{name: a, match: {path: [/api, /api/x/*]}, key: "header:X-Key", limits: [1/1s]}` + companion, ""},
		{`{name: a, match: {path: [/api, /apix]}, key: "header:X-Key", limits: [1/1s]}` + companion, "policies[0].key has"},
		{`{name: a, match: {path: "regex:/api/.*"}, key: "header:X-Key", limits: [1/1s]}` + companion, "policies[0].key has"},
		{`{name: a, key: "header:X-Key", limits: [1/1s]}` + companion, "policies[0].key has"},
		{`{name: a, key: "header:X-Key", limits: [1/1s]}, {name: b, key: client_ip, limits: [1/1s], mode: shadow}`, "policies[0].key has"},
		{`{name: a, key: "header:X-Key", limits: [1/1s]}, {name: b, match: {not: {path: /x}}, key: client_ip, limits: [1/1s]}`, "policies[0].key has"},
		{`{name: a, key: client_ip, client: "header:X-Plan", plans: {gold: 2/1s}, limits: [1/1s]}`, "policies[0].client has header:X-Plan, by which a client chooses its plan"},
		{`{name: a, match: {path: /api}, key: "attribute:t|header:X-Key", plans: {gold: 2/1s}, limits: [1/1s]}` + companion, "policies[0].key has header:X-Key, by which a client chooses its plan"},
		{`{name: a, match: {path: /api}, key: "hash:header:X-Key|client_ip", plans: {gold: 2/1s}, limits: [1/1s]}` + companion, ""},
		{`{name: a, key: client_ip, limits: [1/1s], cost: "header:X-Cost"}`, "policies[0].cost is read from a header"},
		{`{name: a, key: client_ip, limits: [1/1s], cost: "attribute:cost"}`, ""},
	} {
		got := warningsOf(t, "policies: ["+c.policies+"]")
		if c.want == "" {
			if len(got) != 0 {
				t.Errorf("%s\nhas the warning %s", c.policies, &got[0])
			}
			continue
		}
		if len(got) != 1 || !strings.HasPrefix(got[0].String(), "w.yaml:1:") || !strings.Contains(got[0].String(), ": warning: "+c.want) || got[0].Note {
			t.Errorf("%s\nhas the warnings %v, want %s", c.policies, got, c.want)
		}
	}
}

// A limit per day and a limit per 24 hours have a note each, the first of a file.
func TestNotesOfLimitsThatReadAlike(t *testing.T) {
	var got []string
	for _, w := range warningsOf(t, `policies:
  - {name: a, key: client_ip, limits: [500/day, 10/1s, 9/day tz=Asia/Tokyo]}
  - {name: b, key: client_ip, limits: [600/day], plans: {gold: [500/1d, "sliding-log 5/24h"]}}`) {
		if !w.Note {
			t.Errorf("%s is no note", &w)
		}
		got = append(got, w.String())
	}
	want := []string{
		"w.yaml:2:40: note: policies[0].limits[0] may be misread: 500/day begins anew each day at 00:00 UTC; 500/24h is a token bucket, which refills continuously",
		"w.yaml:3:65: note: policies[1].plans.gold[0] may be misread: 500/24h is not tied to the calendar; 500/day begins anew each day at 00:00 UTC",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the notes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Warnings are in the order of the file, with their places, and a set logs them when it loads a
// file.
func TestWarningsAreLogged(t *testing.T) {
	c, err := policy.Parse([]byte("policies:\n  - {name: a, key: 'header:X-A', limits: [1/1s]}\n  - {name: b, key: 'header:X-B', limits: [1/1s]}\n"), "w.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	s, err := policy.New(c, policy.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	w := s.Warnings()
	if len(w) != 2 || w[0].Line != 2 || w[0].Column != 20 || w[0].Field != "policies[0].key" || w[1].Line != 3 {
		t.Errorf("the warnings are %+v", w)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 2 || !strings.Contains(text, "policies[0].key has header:X-A") || !strings.Contains(text, "file=w.yaml line=2 column=20") {
		t.Errorf("the log is %s", text)
	}
}

// A configuration of many warnings fills no log.
func TestLoggedWarningsAreBounded(t *testing.T) {
	c := &policy.Config{}
	for i := range 30 {
		c.Policies = append(c.Policies, policy.Policy{Name: "p" + string(rune('a'+i%26)) + strings.Repeat("x", i/26), Key: []string{"header:X"}, Limits: limits("1/1s")})
	}
	var log strings.Builder
	s, err := policy.New(c, policy.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 21 || !strings.Contains(log.String(), "more=10") || len(s.Warnings()) != 30 {
		t.Errorf("%d lines, %d warnings: %s", n, len(s.Warnings()), &log)
	}
	if got := s.Warnings()[0].String(); !strings.HasPrefix(got, "weir: warning: policies[0].key[0] has") {
		t.Errorf("without a file a warning is %s", got)
	}
}
