package weir_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirlimit/weir"

// arrows says which of our packages each package may import, in the order in which a request flows. What is not
// listed may not be imported; a package that is not listed has no place in the flow yet.
var arrows = map[string][]string{
	"algorithm":              {},
	"algorithm/bounds":       {"algorithm"},
	"store":                  {"algorithm", "internal/panics"},
	"store/memory":           {"algorithm", "store"},
	"store/swap":             {"algorithm", "store", "internal/panics"},
	"store/redis":            {"algorithm", "store", "internal/panics", "internal/redisconn", "internal/urltls"},
	"store/memcached":        {"algorithm", "store", "store/swap"},
	"store/postgres":         {"algorithm", "store", "store/swap", "internal/panics"},
	"store/remote":           {"algorithm", "store", "internal/redisconn", "internal/urltls"},
	"store/storetest":        {"algorithm", "store", "store/memory"},
	"store/storetest/engine": {},
	"":                       {"algorithm", "store", "store/memory", "internal/fallback", "internal/panics"},
	"internal/fallback":      {"algorithm", "store", "store/memory"},
	"identity":               {},
	"internal/follow":        {},
	"internal/faults":        {},
	"internal/nearest":       {},
	"internal/panics":        {},
	"internal/redisconn":     {"internal/panics"},
	"internal/testcert":      {},
	"internal/testpipe":      {},
	"internal/urltls":        {},
	"identity/bearer":        {"identity"},
	"policy":                 {"", "algorithm", "store", "store/memory", "identity", "internal/fallback", "internal/follow", "internal/nearest", "internal/panics"},
	"policy/clients":         {"", "identity", "policy", "internal/nearest"},
	"admission":              {"", "store", "identity", "policy", "internal/fallback", "internal/panics"},
	"httplimit/header":       {"", "algorithm", "admission"},
	"pacing":                 {"httplimit/header"},
	"httplimit":              {"", "store", "identity", "policy", "admission", "httplimit/header", "pacing", "internal/panics"},
	"grpclimit":              {"", "store", "identity", "policy", "admission", "httplimit/header", "pacing"},
	"server/latency":         {"algorithm"},
	"server/guard":           {},
	"server/certificates":    {"internal/follow"},
	"server/preface":         {"server/guard"},
	"server/handshake":       {"server/guard", "server/preface"},
	"server/proxied":         {"server/guard", "server/preface"},
	"server/audit":           {"identity", "server/guard"},
	"server/access":          {"", "store/memory", "server/guard", "internal/follow"},
	"replay":                 {"", "identity", "store/memory"},
	"server/limiters":        {"", "algorithm", "store", "internal/fallback"},
	"server/checks":          {"", "policy", "store"},
	"server/resp":            {"", "algorithm", "store", "policy", "server/limiters", "server/checks", "server/guard", "server/access", "server/audit", "internal/fallback", "server/latency"},
	"server/httpapi":         {"", "algorithm", "store", "policy", "server/limiters", "server/checks", "server/guard", "server/access", "server/audit", "internal/fallback", "server/latency"},
	"server/engines":         {"store", "store/redis", "store/postgres", "store/memcached", "store/remote", "internal/nearest"},
	"server":                 {"identity", "server/access", "server/audit", "server/certificates", "server/handshake", "server/proxied", "server/guard", "", "algorithm", "store", "store/memory", "policy", "policy/clients", "server/limiters", "server/checks", "server/resp", "server/httpapi", "server/engines", "internal/follow", "server/latency"},
	"cmd/weir":               {"", "algorithm/bounds", "store/memory", "store/postgres", "identity", "policy", "policy/clients", "replay", "server", "server/checks", "server/engines", "store", "server/access"},
}

func TestImportsFollowTheFlow(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(out)) {
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
