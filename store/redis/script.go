package redis

import (
	"crypto/sha1" //nolint:gosec // the name of a script in Redis
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// The files of the script, in their order. The most frequent operation is first, and returns before
// the rest is run.
var scriptOrder = []string{
	"take", "swap", "state", "linear", "fixed_window", "calendar", "quota_reset", "refill_bucket", "sliding_window",
	"list", "list_take", "list_cancel", "sliding_log", "sliding_buckets", "apply",
}

// script is the text that is sent to servers, and scriptSHA its SHA-1, under which they store it.
var script, scriptSHA = loadScript()

func loadScript() (text, sha string) {
	var b strings.Builder
	for _, name := range scriptOrder {
		file, err := scriptFiles.ReadFile("script/" + name + ".lua")
		if err != nil {
			panic(err) // the files are embedded
		}
		for line := range strings.Lines(string(file)) { // comments would take memory on the server
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
				b.WriteString(line + "\n")
			}
		}
	}
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // as above
	return b.String(), hex.EncodeToString(sum[:])
}
