package replay

import (
	"strings"
	"testing"
	"time"
)

func TestABarShowsWhateverIsMoreThanNothing(t *testing.T) {
	for _, c := range []struct {
		all, denied, most int64
		dark, light       int
	}{
		{0, 0, 100, 0, 0},
		{100, 0, 100, 0, 40},
		{100, 50, 100, 20, 20},
		{100, 100, 100, 40, 0},
		{1, 0, 1_000_000, 0, 1},
		{1_000_000, 1, 1_000_000, 1, 39},
		{1_000_000, 999_999, 1_000_000, 39, 1},
		{50, 49, 100, 19, 1},
		{500_000, 499_999, 1_000_000, 19, 1},
	} {
		got := bar(c.all, c.denied, c.most)
		if want := strings.Repeat("█", c.dark) + strings.Repeat("░", c.light); got != want {
			t.Errorf("%d of %d denied, at most %d: got %s, want %s", c.denied, c.all, c.most, got, want)
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 2 * time.Hour: "2h", time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m",
		24 * time.Hour: "1d", 83*time.Hour + 59*time.Second: "3d11h0m59s", 3640 * 24 * time.Hour: "3,640d",
	} {
		if got := short(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNothingThatATerminalObeysIsPrinted(t *testing.T) {
	if got, want := printable("a\x1b[2J\xff\n\u202eé\u009b"), `a\x1b[2J\xff\x0a\u202eé\u009b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAClippedTextIsWholeCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"abcd": "abcd", "abcde": "abcd...", "abcé!": "abc...", "\xff\xff\xff\xff\xff": `\xff\xff\xff\xff...`, "\x80\x80\x80\x80\x80\x80": "...",
	} {
		if got := clip(text, 4); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
