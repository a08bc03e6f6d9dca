package clients

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirlimit/weir"
)

// maxLimits bounds the text of a client's own limits, in bytes.
const maxLimits = 4096

// ParseLimits reads the limits of one client, as they stand in the database:
//
//	1000/1m; 50/1s
//	api: 2000/1m; 100/1s
//
// Limits stand apart by semicolons. A line that begins with the name of a policy and a colon is for that policy; one that does not is for every
// policy that has plans, and is under "" in what is returned. No policy has two lines. An error names the line and what would be accepted.
func ParseLimits(text string) (map[string][]weir.Limit, error) {
	if len(text) > maxLimits {
		return nil, fmt.Errorf("clients: limits are of %d bytes; accepted: at most %d bytes", len(text), maxLimits)
	}
	all := map[string][]weir.Limit{}
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, rest, named := strings.Cut(line, ":")
		if !named {
			name, rest = "", line
		}
		if name = strings.TrimSpace(name); named && !isName(name) {
			return nil, fmt.Errorf("clients: limits have the policy %q; accepted: %s", name, nameAccepted)
		}
		if _, twice := all[name]; twice {
			return nil, fmt.Errorf("clients: limits have two lines for policy %q; accepted: one, with semicolons between its limits", name)
		}
		limits, err := parseLine(rest)
		if err != nil {
			return nil, err
		}
		all[name] = limits
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("clients: limits are %q; accepted: limits such as 1000/1m; 50/1s", text)
	}
	return all, nil
}

// parseLine reads limits that stand apart by semicolons.
func parseLine(line string) ([]weir.Limit, error) {
	var limits []weir.Limit
	for text := range strings.SplitSeq(line, ";") {
		l, err := weir.ParseLimit(text)
		if err != nil {
			return nil, fmt.Errorf("%w, in %q", err, strings.TrimSpace(text))
		}
		limits = append(limits, l)
	}
	return limits, nil
}

// FormatLimits is the inverse of ParseLimits: the text of the limits in their canonical form, the policies in order of their names.
func FormatLimits(limits map[string][]weir.Limit) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		if name != "" {
			b.WriteString(name + ": ")
		}
		for i, l := range limits[name] {
			if i > 0 {
				b.WriteString("; ")
			}
			b.WriteString(l.String())
		}
	}
	return b.String()
}

// What policies are called, and how long the name of a plan may be.
const (
	maxName      = 64
	nameAccepted = "a name of at most 64 of a-z A-Z 0-9 . _ -"
)

func isName(s string) bool {
	for _, c := range []byte(s) {
		if c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// quoteShort shows a text of any length in an error.
func quoteShort(s string) string {
	if len(s) > 80 {
		return strconv.Quote(s[:80]) + "…"
	}
	return strconv.Quote(s)
}
