package acceptance_test

import (
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirlimit/weir"

// arrows says which of our packages each package may import, in the order in which a request flows. What is not
// listed may not be imported; a package that is not listed has no place in the flow yet.
var arrows = map[string][]string{
	"algorithm":                    {},
	"internal/bounds":              {"algorithm"},
	"store":                        {"algorithm", "internal/panics"},
	"store/memory":                 {"algorithm", "store"},
	"store/swap":                   {"algorithm", "store", "internal/panics"},
	"store/redis":                  {"algorithm", "store", "store/swap", "internal/panics", "internal/redisconn", "internal/urltls"},
	"store/memcached":              {"algorithm", "store", "store/swap"},
	"store/postgres":               {"algorithm", "store", "store/swap", "internal/panics"},
	"store/remote":                 {"algorithm", "store", "internal/redisconn", "internal/urltls"},
	"store/storetest":              {"algorithm", "store", "store/memory"},
	"internal/testengine":          {},
	"":                             {"algorithm", "store", "store/memory", "internal/decide", "internal/panics"},
	"internal/decide":              {"algorithm", "store", "store/memory", "internal/panics"},
	"identity":                     {},
	"internal/follow":              {},
	"internal/acceptance":          {},
	"internal/faults":              {},
	"internal/nearest":             {},
	"internal/panics":              {},
	"internal/redisconn":           {"internal/panics"},
	"internal/testcert":            {},
	"internal/testpipe":            {},
	"internal/urltls":              {},
	"identity/bearer":              {"identity"},
	"policy":                       {"", "algorithm", "store", "store/memory", "identity", "internal/decide", "internal/follow", "internal/nearest"},
	"policy/clients":               {"", "identity", "policy", "internal/nearest"},
	"admission":                    {"", "store", "identity", "policy", "internal/decide", "internal/panics"},
	"httplimit/header":             {"", "algorithm", "admission"},
	"internal/pacing":              {"httplimit/header"},
	"httplimit":                    {"", "store", "identity", "policy", "admission", "httplimit/header", "internal/pacing", "internal/panics"},
	"grpclimit":                    {"", "store", "identity", "policy", "admission", "httplimit/header", "internal/pacing"},
	"internal/server/latency":      {"algorithm"},
	"internal/server/guard":        {},
	"internal/server/certificates": {"internal/follow"},
	"internal/server/preface":      {"internal/server/guard"},
	"internal/server/handshake":    {"internal/server/guard", "internal/server/preface"},
	"internal/server/proxied":      {"internal/server/guard", "internal/server/preface"},
	"internal/server/audit":        {"identity", "internal/server/guard"},
	"internal/server/access":       {"", "store/memory", "internal/server/guard", "internal/follow"},
	"replay":                       {"", "identity", "store/memory"},
	"internal/server/limiters":     {"", "algorithm", "store"},
	"internal/server/checks":       {"", "policy", "store"},
	"internal/server/operation":    {"", "algorithm", "store", "policy", "internal/decide", "internal/server/limiters", "internal/server/checks", "internal/server/guard", "internal/server/access", "internal/server/audit", "internal/server/latency"},
	"internal/server/resp":         {"algorithm", "store", "policy", "internal/server/operation", "internal/server/limiters", "internal/server/checks", "internal/server/guard", "internal/server/access", "internal/server/latency"},
	"internal/server/httpapi":      {"", "store", "policy", "internal/server/operation", "internal/server/checks", "internal/server/guard", "internal/server/access", "internal/server/latency"},
	"internal/engines":             {"store", "store/redis", "store/postgres", "store/memcached", "store/remote", "internal/nearest"},
	"internal/server":              {"identity", "internal/server/access", "internal/server/audit", "internal/server/certificates", "internal/server/handshake", "internal/server/proxied", "internal/server/guard", "", "algorithm", "store", "store/memory", "policy", "policy/clients", "internal/server/operation", "internal/server/limiters", "internal/server/resp", "internal/server/httpapi", "internal/engines", "internal/follow", "internal/server/latency"},
	"cmd/weir":                     {"", "internal/bounds", "store/memory", "store/postgres", "identity", "policy", "policy/clients", "replay", "internal/server", "internal/server/checks", "internal/engines", "store", "internal/server/access"},
}

func TestImportsFollowTheFlow(t *testing.T) {
	out := goList(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, module+"/...")
	seen := 0
	for line := range strings.Lines(out) {
		imports := strings.Fields(line)
		name := short(imports[0])
		allowed, known := arrows[name]
		if !known {
			t.Errorf("%q has no place in the flow: say in arrows what it may import", name)
			continue
		}
		seen++
		for _, path := range imports[1:] {
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			if !slices.Contains(allowed, short(path)) {
				t.Errorf("%q imports %q; it may import %q", name, short(path), allowed)
			}
		}
	}
	if seen != len(arrows) {
		t.Errorf("%d packages of ours were listed, want %d", seen, len(arrows))
	}
}

func short(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}
