package policy_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// GET includes HEAD, unless a different policy lists HEAD for these requests.
func TestGetStandsForHead(t *testing.T) {
	for _, c := range []struct {
		policies, line string
		want           string // the policies that match
	}{
		{`{name: a, match: {method: GET}, key: all, limits: [9/1s]}`, "HEAD /", "a"},
		{`{name: a, match: {method: [get, post]}, key: all, limits: [9/1s]}`, "head /", "a"},
		{`{name: a, match: {method: POST}, key: all, limits: [9/1s]}`, "HEAD /", ""},
		{`{name: a, match: {method: HEAD}, key: all, limits: [9/1s]}`, "GET /", ""},
		{`{name: a, match: {method: GET}, key: all, limits: [9/1s]}, {name: b, match: {method: HEAD}, key: all, limits: [9/1s]}`, "HEAD /", "b"},
		{`{name: a, match: {method: GET, path: /x}, key: all, limits: [9/1s]}, {name: b, match: {method: HEAD, path: "/**"}, key: all, limits: [9/1s]}`, "HEAD /x", "b"},
		// Elsewhere is not where some of the requests would pass between the two.
		{`{name: a, match: {method: GET}, key: all, limits: [9/1s]}, {name: b, match: {method: HEAD, path: /y}, key: all, limits: [9/1s]}`, "HEAD /x", "a"},
		{`{name: a, match: {method: GET}, key: all, limits: [9/1s]}, {name: b, match: {method: HEAD, not: {path: /x}}, key: all, limits: [9/1s]}`, "HEAD /x", "a"},
		{`{name: a, match: {method: GET}, key: all, limits: [9/1s]}, {name: b, match: {method: HEAD}, mode: shadow, key: all, limits: [9/1s]}`, "HEAD /x", "a b"},
		// Nor where a policy for GET and HEAD is beside this one.
		{`{name: a, match: {method: GET, path: /x}, key: all, limits: [9/1s]}, {name: b, match: {method: [GET, HEAD]}, key: all, limits: [99/1s]}`, "HEAD /x", "a b"},
		{`{name: a, match: {method: GET, path: /x}, key: all, limits: [9/1s]}, {name: b, match: [{method: GET}, {method: HEAD}], key: all, limits: [99/1s]}`, "HEAD /x", "a b"},
		{`{name: a, match: [{method: GET, path: /x}, {method: HEAD, path: /x}], key: all, limits: [9/1s]}`, "HEAD /x", "a"},
		{`{name: a, match: {not: {method: GET, path: /health}}, key: all, limits: [9/1s]}`, "HEAD /health", ""},
		{`{name: a, match: {method: [HEAD, POST], not: {method: GET}}, key: all, limits: [9/1s]}`, "HEAD /", "a"},
	} {
		s := newSet(t, "policies: ["+c.policies+"]", policy.Options{})
		var names []string
		for _, l := range check(t, s, request(c.line)).Each {
			names = append(names, l.Policy)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s\n%s is matched by %q, want %q", c.policies, c.line, got, c.want)
		}
	}
}

func TestHeadCostsAsMuchAsGet(t *testing.T) {
	for text, want := range map[string]int64{`{GET: 7, "*": 2}`: 7, `{GET: 7}`: 7, `{GET: 7, HEAD: 3}`: 3, `{POST: 7, "*": 2}`: 2, `{POST: 7}`: 1} {
		s := newSet(t, "policies: [{name: a, key: all, limits: [100/1s], cost: "+text+"}]", policy.Options{})
		for _, line := range []string{"HEAD /", "head /"} {
			if d := check(t, s, request(line)); d.Each[0].Cost != want {
				t.Errorf("%s: %s costs %d, want %d", text, line, d.Each[0].Cost, want)
			}
		}
	}
}

// The explanation lists HEAD.
func TestExplanationListsHead(t *testing.T) {
	s := newSet(t, "policies: [{name: a, match: {method: GET}, key: all, limits: [9/1s]}, {name: b, match: {not: {method: GET}}, key: all, limits: [9/1s]}]", policy.Options{})
	var text strings.Builder
	for _, line := range []string{"POST /", "GET /"} {
		x, err := s.Explain(t.Context(), request(line))
		if err == nil {
			err = x.WriteText(&text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"a does not match: method is POST, and would have to be GET or HEAD", "b does not match: it is not for method GET or HEAD"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nlacks %q", &text, want)
		}
	}
}
