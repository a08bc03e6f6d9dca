package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// readme returns the README, and the lines of its one indented block that begins so, without the indent.
func readme(t *testing.T, begins string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "\n\n    "+begins)
	if !found {
		t.Fatalf("the README has no block that begins with %q", begins)
	}
	if end := regexp.MustCompile(`(?m)^\S`).FindStringIndex(block); end != nil {
		block = block[:end[0]]
	}
	return strings.TrimRight(begins+strings.ReplaceAll(block, "\n    ", "\n"), "\n") + "\n"
}

func TestPoliciesOfTheReadme(t *testing.T) {
	yaml, _, _ := strings.Cut(readme(t, "policies:"), "\n\n")
	path := file(t, "weir.yaml", yaml)
	if out, log, code := runProgram("policy", "check", path); code != exitOK || !strings.Contains(out, "4 policies, nothing wrong") || log != "" {
		t.Errorf("exit code %d, %s%s\n%s", code, out, log, yaml)
	}
}

// What the README shows of a command is what that prints.
func TestCommandsOfTheReadme(t *testing.T) {
	blocks := []string{readme(t, "$ weir policy check"), readme(t, "$ weir policy explain")}
	t.Chdir("../..")
	t.Setenv("WEIR_CLIENTS", "")
	for _, shown := range blocks {
		line, want, _ := strings.Cut(shown, "\n")
		words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)[2:]
		for i := range words {
			words[i] = strings.Trim(words[i], "'")
		}
		out, log, code := runProgram(words...)
		want, _, _ = strings.Cut(want, "…")
		want, _, _ = strings.Cut(want, "\n\n$")
		if code != exitOK || !strings.HasPrefix(out, strings.TrimRight(want, "\n")) {
			t.Errorf("%s: exit code %d, %s\n%s\nis not what the README shows:\n%s", line, code, log, out, want)
		}
	}
}
