package acceptance_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// top is the root of the module.
const top = "../.."

// The packages that programs import to limit anything.
var library = []string{".", "algorithm", "store", "store/memory"}

// parts are the other public packages. Their entry points belong together, and are used in examples
// of the package.
var parts = []string{"identity", "identity/bearer", "admission", "httplimit", "httplimit/header", "grpclimit", "policy", "policy/clients", "replay", "store/swap", "store/redis", "store/postgres", "store/memcached", "store/remote", "store/storetest"}

func TestEveryEntryPointHasAnExample(t *testing.T) {
	for _, dir := range library {
		p := read(t, dir)
		check := func(name string, examples []*doc.Example) {
			if len(examples) == 0 {
				t.Errorf("%s: no example of %s", dir, name)
			}
			for _, e := range examples {
				if e.Output == "" && !e.EmptyOutput {
					t.Errorf("%s: the example of %s is not run: it has no output", dir, name)
				}
			}
		}
		found := 0
		for _, f := range p.Funcs {
			check(f.Name, f.Examples)
			found++
		}
		for _, typ := range p.Types {
			for _, f := range typ.Funcs {
				check(f.Name, f.Examples)
				found++
			}
			for _, m := range typ.Methods {
				check(typ.Name+"."+m.Name, m.Examples)
				found++
			}
		}
		if found == 0 {
			t.Errorf("%s: no entry points", dir)
		}
	}
}

func TestEveryEntryPointIsUsedInAnExample(t *testing.T) {
	for _, dir := range parts {
		p := read(t, dir)
		files, err := filepath.Glob(filepath.Join(top, dir, "example*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: no examples, %v", dir, err)
		}
		var examples strings.Builder
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(text)
		}
		check := func(name string) {
			if !strings.Contains(examples.String(), "."+name+"(") {
				t.Errorf("%s: %s is used in no example", dir, name)
			}
		}
		for _, f := range p.Funcs {
			check(f.Name)
		}
		for _, typ := range p.Types {
			for _, f := range append(typ.Funcs, typ.Methods...) {
				check(f.Name)
			}
		}
	}
}

func read(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(top, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(set, files, path.Join("github.com/weirlimit/weir", dir))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
