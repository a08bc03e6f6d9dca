package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

const replayLine = `192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 5` + "\n"

// replayArgs parses arguments as the program does, and runs them on the log given as standard input.
func replayArgs(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	var cli struct {
		Replay replayCommand `cmd:""`
	}
	parser, err := kong.New(&cli, kong.Name("weir"), kong.Exit(func(code int) { t.Fatalf("exit %d", code) }))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append([]string{"replay"}, args...)); err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = cli.Replay.replay(context.Background(), strings.NewReader(stdin), &out, noProgress)
	return out.String(), err
}

func TestReplayReadsStandardInput(t *testing.T) {
	for _, args := range [][]string{{"--limit", "1/1m"}, {"--limit", "1/1m", "-"}} {
		out, err := replayArgs(t, replayLine+replayLine, args...)
		if err != nil || !strings.HasPrefix(out, "2 requests of 1 client (by client_ip)") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

func TestReplayComparesLimitsOnFilesAsJSON(t *testing.T) {
	name := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(name, []byte(strings.Repeat(replayLine, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := replayArgs(t, "", "--json", "--key", "client_ip,path", "--limit", "1/1m", "--limit", "gcra 10/1m burst=3", name)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Key    []string
		Limits []struct {
			Limit  string
			Denied int
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Key) != 2 || len(report.Limits) != 2 || report.Limits[0].Denied != 4 ||
		report.Limits[1].Denied != 2 || report.Limits[1].Limit != "gcra 10/1m burst=3" {
		t.Errorf("%+v", report)
	}
}

func TestReplayRefusesWhatMakesNoSense(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--limit", nil},
		{"count", []string{"--limit", "0/1m"}},
		{"key is \"mail\"; accepted: one or more of client_ip,", []string{"--limit", "1/1m", "--key", "mail"}},
		{"cost is 2; accepted: 1 to 1, the capacity of limit 1/1m", []string{"--limit", "1/1m", "--cost", "2"}},
		{"window is 500ms; accepted: whole seconds", []string{"--limit", "1/1m", "--window", "500ms"}},
		{"top is -1; accepted: 0 to", []string{"--limit", "1/1m", "--top=-1"}},
		{"bucket is 1ms; accepted:", []string{"--limit", "1/1m", "--bucket", "1ms"}},
		{"max-clients is -1; accepted: 1 to", []string{"--limit", "1/1m", "--max-clients=-1"}},
		{"no/such/file", []string{"--limit", "1/1m", "no/such/file"}},
		{"is a folder", []string{"--limit", "1/1m", "."}},
		{"twice", []string{"--limit", "1/1m", "-", "-"}},
	} {
		_, err := replayArgs(t, replayLine, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.args, err, c.want)
		}
	}
}

func TestReplayFailsAfterTheReportWhenNoLineIsARequest(t *testing.T) {
	out, err := replayArgs(t, "hello\n", "--limit", "1/1m")
	if err == nil || !strings.Contains(err.Error(), "none of 1 lines") || !strings.Contains(out, "hello") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReplayOfAnEmptyLogIsNoError(t *testing.T) {
	out, err := replayArgs(t, "", "--limit", "1/1m")
	if want := "0 requests of 0 clients (by client_ip)\n"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestReplayShowsNoBarInAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tell, done := progressOn(f)(100)
	done()
	if tell != nil {
		t.Error("progress is told to a file")
	}
}
