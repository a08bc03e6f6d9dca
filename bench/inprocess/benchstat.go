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
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/weirlimit/weir/bench/inprocess\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range results {
		name := fmt.Sprintf("Benchmark%s/peer=%s-%d", title(r.Workload), slug(r.Peer), runtime.GOMAXPROCS(0))
		if r.Workload == memory {
			fmt.Fprintf(&b, "%s\t1\t%.1f B/key\t%.1f B/key-with-text\n", name, r.Heap.PerKey, r.Heap.WithText)
			continue
		}
		fmt.Fprintf(&b, "%s\t%d\t%.2f ns/op\t%.0f B/op\t%.0f allocs/op\n", name, r.Timing.Requests, r.Timing.Nanoseconds, r.Timing.Bytes, r.Timing.Allocs)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func title(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "-") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// slug leaves nothing in a name that the format gives a meaning to.
func slug(name string) string {
	return strings.NewReplacer(", ", "-", " ", "-", "/", "-").Replace(name)
}
