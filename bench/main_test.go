package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestMain lets the test's own binary be the process that a slot runs in.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "inprocess" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTheReportStatesVersionsOfPeers(t *testing.T) {
	var out strings.Builder
	args := "inprocess -rounds 1 -time 1ms -only sync.Map;bare -workloads hot -skip-memory"
	if err := run(t.Context(), strings.Fields(args), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "golang.org/x/time v") || strings.Contains(out.String(), "ulule") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestAnUnknownCommandListsTheOthers(t *testing.T) {
	for _, args := range [][]string{nil, {"memory"}, {"-h"}} {
		var usage strings.Builder
		err := run(t.Context(), args, io.Discard, &usage)
		if strings.Count(usage.String(), "\n") != 4 || !strings.Contains(usage.String(), "go run . engines") || (err == nil) != (len(args) > 0 && args[0] == "-h") {
			t.Errorf("%q: %v\n%s", args, err, usage.String())
		}
	}
}
