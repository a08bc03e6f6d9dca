package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/weirlimit/weir"
	"github.com/weirlimit/weir/algorithm"
)

func TestLimitExplain(t *testing.T) {
	out, log, code := runProgram("limit", "explain", "100/min")
	const want = `limit      100/1m
algorithm  token-bucket: a bucket of 100 tokens starts full and regains 100 per 1m, continuously; a request takes its cost or is denied
at once    100 units from a fresh key; a request that costs more never passes
rate       one unit each 600ms, on average
at worst   199 units in any 1m (b+q−1, where q is the count and b the units at once)
state      at most 8 bytes for a key, besides the key and the record of the store
`
	if code != exitOK || out != want || log != "" {
		t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, log, out, want)
	}
	if out, _, _ := runProgram("limit", "explain", "500/day"); !strings.Contains(out, "\nnote       500/day begins anew each day at 00:00 UTC; 500/24h is a token bucket") {
		t.Errorf("500/day:\n%s", out)
	}
	if out, _, code := runProgram("limit", "explain", "gcra", "10/1s", "burst=20"); code != exitOK || !strings.HasPrefix(out, "limit      gcra 10/1s burst=20\n") {
		t.Errorf("several words: exit code %d, %s", code, out)
	}
	if _, log, code := runProgram("limit", "explain", "5/mins"); code != exitError || !strings.HasSuffix(log, "did you mean 5/min?\n") {
		t.Errorf("5/mins: exit code %d, %s", code, log)
	}
}

func TestLimitExplainOfEveryAlgorithm(t *testing.T) {
	for _, a := range algorithm.All() {
		text := string(a) + " 1000000/1s"
		switch a {
		case weir.Calendar:
			text = "calendar 500/week tz=Asia/Tokyo"
		case weir.Concurrent:
			text = "concurrent 10 lease=30s"
		}
		out, log, code := runProgram("limit", "explain", text)
		if code != exitOK || strings.ContainsAny(out, "{}") || strings.Count(out, "\n") < 5 {
			t.Errorf("%s: exit code %d, %s%s", text, code, log, out)
		}
		if meanings[a] == "" {
			t.Errorf("%s has no meaning", a)
		}
		out, _, code = runProgram("limit", "explain", "--json", text)
		var e struct {
			Limit      weir.Limit
			Capacity   int64
			WorstUnits uint64 `json:"worst_units"`
			StateBytes int64  `json:"state_bytes"`
		}
		if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitOK {
			t.Fatalf("%s: %v, exit code %d\n%s", text, err, code, out)
		}
		if e.Limit != weir.MustParseLimit(text) || e.Capacity < 1 || e.WorstUnits < 1 || e.StateBytes < 8 {
			t.Errorf("%s: %+v", text, e)
		}
	}
}

// docs/algorithms.md shows the output of the command.
func TestLimitExplainOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	if out, _, _ := runProgram("limit", "explain", "100/min"); !strings.Contains(string(page), "$ weir limit explain 100/min\n"+out+"```\n") {
		t.Errorf("docs/algorithms.md does not have\n%s", out)
	}
}
