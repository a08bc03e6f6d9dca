package storetest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of rules to docs/stores.md")

const (
	docs    = "../../docs/stores.md"
	heading = "## What every store must do\n"
)

// TestDocsListTheRules keeps the section of docs/stores.md equal to Rules. With -update it writes it.
func TestDocsListTheRules(t *testing.T) {
	var want strings.Builder
	want.WriteString(heading + "\nPackage `store/storetest` holds stores to these rules. Each is a subtest of that name; a letter and a number before it count the\n" +
		"pitfalls of other limiters that it is about. A test of a store of your own is a `storetest.Harness` and a call of `storetest.Run`.\n\n" +
		"| rule | |\n|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&want, "| %s | %s |\n", r.Name, r.Sentence)
	}
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, section, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("%s has no heading %q", docs, heading)
	}
	after := ""
	if i := strings.Index(section, "\n## "); i >= 0 {
		section, after = section[:i], section[i:]
	}
	if heading+section == want.String() {
		return
	}
	if !*update {
		t.Fatalf("%s lists other rules: go test ./store/storetest -run TestDocsListTheRules -update writes it", docs)
	}
	if err := os.WriteFile(docs, []byte(before+want.String()+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDeploymentRulesAreRules(t *testing.T) {
	for _, name := range deploymentRules {
		if sentenceOf(name) == "" {
			t.Errorf("deploymentRules has %s, which is no rule", name)
		}
	}
}
