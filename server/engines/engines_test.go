package engines_test

import (
	"strings"
	"testing"

	"github.com/weirlimit/weir/server/engines"
)

func TestShownHidesWhatMayBeSecret(t *testing.T) {
	for url, want := range map[string]string{
		"redis://host:1/2":                           "redis://host:1/2",
		"redis://u:secret@host/2?timeout=1s":         "redis://host/2",
		"redis://u:sec@secret@host":                  "redis://...",
		"redis://u:secret/secret@host:1/0":           "redis://...",
		"redis://u:secret#@host":                     "redis://...",
		"redis://:secret@host/0":                     "redis://host/0",
		"redis://u:secret?secret@host":               "redis://...",
		"redis://host?sentinel_password=p@secret":    "redis://...",
		"redis+cluster://:secret@a:1,b:2":            "redis+cluster://a:1,b:2",
		"postgres://u@host/db?password=secret":       "postgres://host/db",
		"secret":                                     "a text without ://",
		"redis:u:secret@host":                        "a text without ://",
		"mysql://u:secret@[::1]:5/db?sslcert=secret": "mysql://[::1]:5/db",
	} {
		if got := engines.Shown(url); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s is shown as %s, want %s", url, got, want)
		}
	}
}

func TestPasswordsInTheClear(t *testing.T) {
	for url, want := range map[string]bool{
		"redis://u:p@10.0.0.1:6379":                true,
		"redis://u:p@redis.internal":               true,
		"redis+cluster://u:p@127.0.0.1,10.0.0.2:7": true,
		"redis+sentinel://:p@[fe80::1]:5/name":     true,
		"redis://10.0.0.1:6379":                    false,
		"redis://u:p@127.0.0.1:6379":               false,
		"redis://u:p@localhost/3":                  false,
		"redis://u:p@[::1]:6379":                   false,
		"rediss://u:p@10.0.0.1":                    false,
		"postgres://u:p@10.0.0.1/db":               false, // which answers a challenge, or uses TLS
	} {
		if got := engines.InTheClear(url); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

func TestPasswordsThatAreNotEncodedAreRefusedUnseen(t *testing.T) {
	for _, url := range []string{
		"redis://u:secret/secret@127.0.0.1:1", "redis://:secret?secret@127.0.0.1:1", "rediss://u:a@secret@127.0.0.1:1",
		"postgres://u:x@secret@127.0.0.1:1/db", "memcached://u:12?secret=x@127.0.0.1", "weir://:secret#@127.0.0.1:1",
	} {
		if _, err := engines.Open(t.Context(), url, engines.Options{}); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "%40") {
			t.Errorf("Open(%q): %v", url, err)
		}
	}
}

func TestSchemes(t *testing.T) {
	for _, url := range []string{"", "memory", "redis", "redis:/x", "mysql://h", "REDIS://h", "://h"} {
		if scheme, ok := engines.Scheme(url); ok {
			t.Errorf("%q is of %s", url, scheme)
		}
		if _, err := engines.Open(t.Context(), url, engines.Options{}); err == nil || !strings.Contains(err.Error(), "accepted: ") {
			t.Errorf("Open(%q): %v", url, err)
		}
	}
}
