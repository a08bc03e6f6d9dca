package redis

import (
	"crypto/sha1" //nolint:gosec // it is the name that servers know a script by
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// The files of the script, in their order: what is used most goes first, and returns before the rest is even looked at.
var scriptOrder = []string{
	"take", "swap", "state", "linear", "fixed_window", "calendar", "quota_reset", "refill_bucket", "sliding_window", "hybrid", "exponential", "log", "parts",
}

// script is the one script, and scriptSHA its name.
var script, scriptSHA = loadScript()

func loadScript() (text, sha string) {
	var b strings.Builder
	for _, name := range scriptOrder {
		file, err := scriptFiles.ReadFile("script/" + name + ".lua")
		if err != nil {
			panic(err) // it is embedded, or this does not compile
		}
		for line := range strings.Lines(string(file)) { // without comments: it is sent to the server, and kept there
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
				b.WriteString(line + "\n")
			}
		}
	}
	sum := sha1.Sum([]byte(b.String())) //nolint:gosec // as above
	return b.String(), hex.EncodeToString(sum[:])
}
