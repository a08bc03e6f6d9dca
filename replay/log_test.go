package replay_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/replay"
)

// realLog is 10,000 requests whose seconds are out of order. It is beside the repository in some places only; what is
// shown on it is shown on the sample too.
const realLog = "../../shared/data/apache_access.log"

func TestEveryRequestOfARealLogIsCounted(t *testing.T) {
	logs, err := replay.Open([]string{realLog}, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return // beside the sample's tests, which need no other file
	}
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	r, err := replay.Run(context.Background(), logs.List, options("10/1m", "sliding-log 10/1m"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Lines != 10_000 || r.Requests != 10_000 || r.Unparsed.Lines != 0 || r.Late.Requests != 0 || r.Clients != 1753 {
		t.Errorf("%d lines, %d requests, %d unparsed, %d late, %d clients", r.Lines, r.Requests, r.Unparsed.Lines, r.Late.Requests, r.Clients)
	}
	text, err := os.ReadFile(realLog)
	if err != nil {
		t.Fatal(err)
	}
	times, clients := simply(t, string(text))
	checkDenied(t, r.Limits[0], tokensDenied(times, clients, 10, 10, 1))
	checkDenied(t, r.Limits[1], logDenied(times, clients, 10, time.Minute))
}

// simply reads a log in the plainest way and sorts it whole.
func simply(t *testing.T, text string) (times []time.Time, clients []string) {
	t.Helper()
	type request struct {
		at     time.Time
		client string
	}
	var requests []request
	for line := range strings.Lines(text) {
		client, rest, _ := strings.Cut(line, " ")
		_, rest, _ = strings.Cut(rest, "[")
		stamp, _, _ := strings.Cut(rest, "]")
		at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, request{at, client})
	}
	slices.SortStableFunc(requests, func(a, b request) int { return cmp.Compare(a.at.Unix(), b.at.Unix()) })
	for _, r := range requests {
		times, clients = append(times, r.at), append(clients, r.client)
	}
	return times, clients
}

func TestLogsAreOpenedByName(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "access.log")
	if err := os.WriteFile(name, []byte(after(0)), 0o600); err != nil {
		t.Fatal(err)
	}
	logs, err := replay.Open([]string{name, "-", name}, strings.NewReader(after(1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(logs.List) != 3 || logs.Size != -1 {
		t.Errorf("%d logs of size %d", len(logs.List), logs.Size)
	}
	r, err := replay.Run(context.Background(), logs.List, options("1/1m"))
	if err != nil || r.Requests != 3 || r.Logs[0].Name != name || r.Logs[1].Name != "-" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := logs.Close(); err != nil {
		t.Error(err)
	}
	if logs, err = replay.Open([]string{name, name}, nil); err != nil || logs.Size != 2*int64(len(after(0))) {
		t.Errorf("size %d, %v", logs.Size, err)
	}
	if err := logs.Close(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoLogIsNotOpened(t *testing.T) {
	for want, names := range map[string][]string{
		"0 logs; accepted: 1 to 1024":    nil,
		"1025 logs; accepted: 1 to 1024": slices.Repeat([]string{"-"}, 1025),
		"no/such/log":                    {"no/such/log"},
		"is a folder; accepted: ":        {"."},
		"given twice; accepted: once":    {"-", "-"},
	} {
		if _, err := replay.Open(names, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
