package bounds_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
)

// Each block of the page that is marked as a limit is its text and then requests with what happened, such as
// "at 10s take 1: denied, 0 left, retry after 10s".
func TestExamplesOfThePageHappen(t *testing.T) {
	page, err := os.ReadFile("../../docs/algorithms.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```limit\n(.*?)\n```").FindAllStringSubmatch(string(page), -1)
	shown := map[algorithm.Algorithm]bool{}
	for _, block := range blocks {
		lines := strings.Split(block[1], "\n")
		limit, err := algorithm.ParseLimit(lines[0])
		if err != nil {
			t.Fatal(err)
		}
		shown[limit.Algorithm] = true
		if got := replay(t, limit, lines[1:]); got != strings.Join(lines[1:], "\n") {
			t.Errorf("%s does:\n%s", lines[0], got)
		}
	}
	for _, a := range algorithm.All() {
		if !shown[a] {
			t.Errorf("the page has no example of %s", a)
		}
	}
}

// replay carries out the lines' requests and returns the lines as they should be.
func replay(t *testing.T, limit algorithm.Limit, lines []string) string {
	t.Helper()
	program, err := algorithm.Compile(limit, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var state []int64
	for _, line := range lines {
		var text string
		var cost int64
		if _, err := fmt.Sscanf(line, "at %s take %d:", &text, &cost); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		at, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var r algorithm.Result
		state, r = program.Apply(state, algorithm.Op{Cost: cost}, int64(at))
		out = append(out, fmt.Sprintf("at %s take %d: %s", text, cost, describe(r.Decision)))
	}
	return strings.Join(out, "\n")
}

func describe(d algorithm.Decision) string {
	switch {
	case d.RetryAfter == algorithm.Never:
		return fmt.Sprintf("denied, %d left, retry after never", d.Remaining)
	case !d.Allowed:
		return fmt.Sprintf("denied, %d left, retry after %v", d.Remaining, d.RetryAfter)
	case d.Delay > 0:
		return fmt.Sprintf("allowed, %d left, wait %v", d.Remaining, d.Delay)
	}
	return fmt.Sprintf("allowed, %d left", d.Remaining)
}
