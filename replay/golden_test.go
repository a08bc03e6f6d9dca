package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/replay"
)

var update = flag.Bool("update", false, "write testdata anew")

// sample is testdata/access.log: a day of visitors, a crawler that comes in bursts, and each thing that can be
// wrong with a log.
func sample() string {
	var b strings.Builder
	line := func(client string, second int, path, agent string) {
		at := start.Add(time.Duration(second) * time.Second)
		fmt.Fprintf(&b, "%s - - [%s] \"GET %s HTTP/1.1\" 200 512 \"-\" \"%s\"\n", client, at.Format("02/Jan/2006:15:04:05 -0700"), path, agent)
	}
	for minute := range 24 * 60 {
		if minute%7 == 0 {
			line(fmt.Sprintf("192.0.2.%d", minute%11), minute*60+minute%60, fmt.Sprintf("/page/%d", minute%5), "Browser/1.0")
		}
		if minute%180 == 60 {
			for i := range 20 { // newest first: within the window
				line("2001:db8::bad", minute*60+40-2*i, fmt.Sprintf("/page/%d?from=crawler", i), "Crawler/2.0")
			}
		}
	}
	line("192.0.2.97", 36*365*86400, "/ahead", "Browser/1.0")
	line("192.0.2.99", 12*3600, "/late", "Browser/1.0")
	b.WriteString("this is no request\n")
	b.WriteString("192.0.2.98 - - [18/May/2015:25:00:00 +0000] \"GET / HTTP/1.1\" 200 5\n")
	b.WriteString("esc\x1b[31m\xff - - [18/May/2015:10:00:00 +0000] \"GET / HT")
	return b.String()
}

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what came out (go test -update writes it anew):\n%s", name, got)
	}
}

func TestTheSampleIsTheOneOnDisk(t *testing.T) { golden(t, "access.log", []byte(sample())) }

// sampleReport is of the file, under its name alone.
func sampleReport(t *testing.T, o replay.Options) *replay.Report {
	t.Helper()
	report, err := replay.Run(context.Background(), []replay.Log{{Name: "access.log", Reader: strings.NewReader(sample())}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestTheReportOfOneLimitReadsLikeThis(t *testing.T) {
	var out bytes.Buffer
	if err := sampleReport(t, options("5/1m")).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "one.txt", out.Bytes())
}

// The example of docs/replay.md can be pasted at the root of the repository.
func TestTheDocumentedExampleIsReal(t *testing.T) {
	o := options("5/1m", "10/1m burst=20")
	o.Bucket = 6 * time.Hour
	report, err := replay.Run(context.Background(), []replay.Log{
		{Name: "replay/testdata/access.log", Reader: strings.NewReader(sample())},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	command := `go run ./cmd/weir replay --limit 5/1m --limit "10/1m burst=20" --bucket 6h replay/testdata/access.log` + "\n"
	if want := command + "```\n\n```text\n" + out.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/replay.md does not have\n%s", want)
	}
}

func TestTheReportOfSeveralLimitsReadsLikeThis(t *testing.T) {
	o := options("5/1m", "leaky-queue 5/1m queue=10", "sliding-log 1/24h")
	o.Top, o.Bucket = 2, 6*time.Hour
	o.Key, _ = replay.ParseKey("method,user-agent")
	var out bytes.Buffer
	if err := sampleReport(t, o).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "several.txt", out.Bytes())
}

func TestTheReportForProgramsIsThis(t *testing.T) {
	o := options("5/1m", "10/1m")
	o.Top, o.Bucket = 2, 12*time.Hour
	o.Key, _ = replay.ParseKey("client_ip,user-agent")
	var out bytes.Buffer
	if err := sampleReport(t, o).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "two.json", out.Bytes())
}

func TestListsOfAnEmptyReportAreEmptyAndNotNull(t *testing.T) {
	var out bytes.Buffer
	if err := run(t, options("1/1m"), "").WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) || strings.Contains(out.String(), "null") || strings.Contains(out.String(), `"first"`) {
		t.Error(out.String())
	}
}

func TestTheCountsOfAReportAddUp(t *testing.T) {
	r := sampleReport(t, options("5/1m", "gcra 1/1h"))
	if r.Lines != int64(strings.Count(sample(), "\n"))+1 || r.Lines != r.Requests+r.Unparsed.Lines {
		t.Errorf("%d lines, %d requests, %d unparsed", r.Lines, r.Requests, r.Unparsed.Lines)
	}
	var requests int64
	denied := make([]int64, len(r.Limits))
	for _, b := range r.Timeline {
		requests += b.Requests
		for i, n := range b.Denied {
			denied[i] += n
		}
	}
	if requests != r.Requests {
		t.Errorf("%d requests in the timeline, want %d", requests, r.Requests)
	}
	for i, l := range r.Limits {
		var top int64
		for _, c := range l.Top {
			top += c.Denied
		}
		if denied[i] != l.Denied || int64(len(l.Top)) == l.ClientsDenied && top != l.Denied {
			t.Errorf("%s: %d denied, %d in the timeline, %d of the top", l.Limit, l.Denied, denied[i], top)
		}
	}
}
