package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// writeBenchstat writes a line for each measurement, in the Go benchmark data format.
func writeBenchstat(path string, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/weirlimit/weir/bench/middleware\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range results {
		fmt.Fprintf(&b, "Benchmark%s/peer=%s-%d\t%d\t%.2f ns/op\t%.0f B/op\t%.0f allocs/op\t%.0f cpu-ns/op\n", title(r.Workload), slug(r.Peer), runtime.GOMAXPROCS(0),
			r.Timing.Requests, r.Timing.Nanoseconds, r.Timing.Bytes, r.Timing.Allocs, r.Timing.Processor)
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

func title(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// slug leaves nothing in a name that the format, or a file system, gives a meaning to.
func slug(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "/", "-", "*", "").Replace(name)
}
