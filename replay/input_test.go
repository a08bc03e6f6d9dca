package replay_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/weirlimit/weir/replay"
)

func TestLinesThatDoNotParseAreCountedAndShown(t *testing.T) {
	bad := "\n# a comment\n" + after(0) + strings.Repeat("nonsense\n", 10) + strings.Repeat("y", 3<<20) + "\n" + after(1)
	r := run(t, options("1/1m"), bad, "more nonsense")
	if r.Lines != 16 || r.Requests != 2 || r.Unparsed.Lines != 14 || r.Logs[0].Unparsed != 13 || r.Logs[1].Unparsed != 1 {
		t.Errorf("%d lines, %d requests, %d unparsed, %+v", r.Lines, r.Requests, r.Unparsed.Lines, r.Logs)
	}
	if s := r.Unparsed.Shown; len(s) != 5 || s[0].Line != 1 || !strings.Contains(s[0].Reason, "empty") ||
		s[1].Text != "# a comment" && s[1].Text != "more nonsense" {
		t.Errorf("%+v", s)
	}
	r = run(t, options("1/1m"), after(0)+strings.Repeat("y", 1<<20+1)+"\n"+after(1))
	if s := r.Unparsed.Shown; len(s) != 1 || s[0].Line != 2 || s[0].Reason != "longer than 1048576 bytes" || len(s[0].Text) > 200 {
		t.Errorf("%+v", s)
	}
	long := strings.Replace(after(1), "test", strings.Repeat("y", 1<<20-200), 1)
	if r = run(t, options("1/1m"), long); r.Requests != 1 {
		t.Errorf("a line of %d bytes is not a request: %+v", len(long), r.Unparsed)
	}
}

func TestALineCutShortIsARequest(t *testing.T) {
	r := run(t, options("1/1m"), after(0)+strings.TrimSuffix(after(1), "\"\n"))
	if r.Requests != 2 || r.CutShort.Lines != 1 || r.CutShort.Shown[0].Line != 2 || r.Logs[0].CutShort != 1 || r.Unparsed.Lines != 0 {
		t.Errorf("%d requests, %+v, %+v", r.Requests, r.CutShort, r.Unparsed)
	}
}

func TestGzipIsReadLikePlainText(t *testing.T) {
	var packed bytes.Buffer
	for i := range 3 { // as made by appending to a compressed log
		w := gzip.NewWriter(&packed)
		_, _ = io.WriteString(w, after(i))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r := run(t, options("1/1m"), packed.String()); r.Requests != 3 || r.Limits[0].Denied != 2 {
		t.Errorf("%+v", r)
	}
	for _, damaged := range []string{packed.String()[:packed.Len()-5], "\x1f\x8bnonsense"} {
		log := replay.Log{Name: "access.log.gz", Reader: strings.NewReader(damaged)}
		_, err := replay.Run(context.Background(), []replay.Log{log}, options("1/1m"))
		if err == nil || !strings.Contains(err.Error(), "access.log.gz, after line ") {
			t.Errorf("of a damaged log: %v", err)
		}
	}
}

func TestLineEndsAndMarksAreNoPartOfTheLine(t *testing.T) {
	o := options("1/1m")
	o.Key, _ = replay.ParseKey("client_ip,user-agent")
	for name, log := range map[string]string{
		"CRLF":        strings.ReplaceAll(after(0)+after(0), "\n", "\r\n"),
		"no last end": strings.TrimSuffix(after(0)+after(0), "\n"),
		"mark":        "\xef\xbb\xbf" + after(0) + after(0),
	} {
		if r := run(t, o, log); r.Requests != 2 || r.Clients != 1 || r.Unparsed.Lines+r.CutShort.Lines != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestAnUnparsedLineIsShownWithoutItsEnd(t *testing.T) {
	if s := run(t, options("1/1m"), "nonsense\r\n").Unparsed.Shown; len(s) != 1 || s[0].Text != "nonsense" {
		t.Errorf("%+v", s)
	}
}

func TestAnEmptyLogIsAReportOfNothing(t *testing.T) {
	if r := run(t, options("1/1m"), ""); r.Requests != 0 || r.Lines != 0 || !r.First.IsZero() || len(r.Timeline) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAReadErrorNamesTheLog(t *testing.T) {
	broken := errors.New("broken disk")
	for _, text := range []string{"", after(0)} {
		log := replay.Log{Name: "access.log", Reader: io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))}
		_, err := replay.Run(context.Background(), []replay.Log{log}, options("1/1m"))
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "access.log") {
			t.Errorf("after %d bytes: %v", len(text), err)
		}
	}
}

func TestProgressIsEveryByte(t *testing.T) {
	o, read := options("1/1m"), 0
	o.Progress = func(n int) { read += n }
	log := strings.Repeat(after(0), 5000)
	if run(t, o, log, log); read != 2*len(log) {
		t.Errorf("%d bytes of %d", read, 2*len(log))
	}
}
