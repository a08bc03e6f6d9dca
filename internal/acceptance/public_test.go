package acceptance_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// public are the packages that programs can import. A package that is added here is a promise to
// its users; all others are in internal/.
var public = []string{
	"", "admission", "algorithm", "grpclimit", "httplimit", "httplimit/header", "identity", "identity/bearer",
	"policy", "policy/clients", "replay", "store", "store/memcached", "store/memory", "store/postgres",
	"store/redis", "store/remote", "store/storetest", "store/swap",
}

func TestPublicPackages(t *testing.T) {
	var found []string
	for path := range strings.FieldsSeq(goList(t, module+"/...")) {
		name := short(path)
		if !strings.HasPrefix(name, "internal/") && !strings.HasPrefix(name, "cmd/") {
			found = append(found, name)
		}
	}
	t.Logf("public packages: %q", found)
	if !slices.Equal(found, public) {
		t.Errorf("the public packages are %q, want %q", found, public)
	}
}

// A program that limits in memory compiles nothing outside the standard library.
func TestMemoryNeedsTheStandardLibraryOnly(t *testing.T) {
	list := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module, module+"/store/memory")
	for path := range strings.FieldsSeq(list) {
		if path != module && !strings.HasPrefix(path, module+"/") {
			t.Errorf("package weir with its memory store imports %s", path)
		}
	}
}

// A newcomer sees the whole module at one glance.
func TestTopHasFewEntries(t *testing.T) {
	out, err := exec.Command("git", "-C", top, "ls-files").Output()
	if err != nil {
		t.Skipf("no git repository: %v", err)
	}
	entries := map[string]bool{}
	for path := range strings.Lines(string(out)) {
		entry, _, _ := strings.Cut(strings.TrimSpace(path), "/")
		entries[entry] = true
	}
	if len(entries) > 30 {
		t.Errorf("%d entries at the top, want at most 30: %q", len(entries), slices.Sorted(maps.Keys(entries)))
	}
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
