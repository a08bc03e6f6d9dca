package main

import (
	"os"
	"strings"
	"testing"
)

func TestBoundsPrintsThePagesTable(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := new(boundsCommand).write(&out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 18 || !strings.Contains(string(page), out.String()) {
		t.Errorf("%d lines, not the table of docs/algorithms.md:\n%s", lines, &out)
	}
}
