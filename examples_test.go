package weir_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"testing"
)

// The packages that programs import to limit anything.
var library = []string{".", "algorithm", "algorithm/bounds", "store", "store/memory"}

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

func read(t *testing.T, dir string) *doc.Package {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
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
