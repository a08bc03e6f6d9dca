package redis

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestURL(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost":                          "localhost:6379",
		"redis://10.0.0.1:7000/3":                    "10.0.0.1:7000",
		"redis://[::1]":                              "[::1]:6379",
		"redis://[::1]:7000/":                        "[::1]:7000",
		"rediss://host?timeout=200ms&prefix=shop":    "host:6379",
		"redis://u:p%40%2F@host":                     "host:6379",
		"redis://u:p@ss@host":                        "host:6379",
		"redis+cluster://a,b:1,[::1]":                "a:6379,b:1,[::1]:6379",
		"redis+cluster://a/0":                        "a:6379",
		"redis+sentinel://a,b:1/mymaster":            "a:26379,b:1",
		"rediss+sentinel://a/mymaster/2?client_name": "a:26379",
	} {
		a, err := parseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.Join(a.client.InitAddress, ","); got != want {
			t.Errorf("%s leads to %s, want %s", text, got, want)
		}
		if !a.client.DisableCache || !a.client.DisableRetry || a.client.ForceSingleClient != !strings.Contains(text, "+") {
			t.Errorf("%s: %+v", text, a.client)
		}
		if (a.client.TLSConfig != nil) != strings.HasPrefix(text, "rediss") {
			t.Errorf("%s: TLS %v", text, a.client.TLSConfig)
		}
	}
	a, err := parseURL("rediss+sentinel://user:pass@a/mymaster/2?sentinel_user=su&sentinel_password=sp&timeout=2s&dial_timeout=3s&prefix=shop&client_name=me")
	if err != nil {
		t.Fatal(err)
	}
	c := a.client
	if c.Username != "user" || c.Password != "pass" || c.SelectDB != 2 || c.Sentinel.MasterSet != "mymaster" || c.Sentinel.Username != "su" ||
		c.Sentinel.Password != "sp" || c.Sentinel.TLSConfig == nil || a.timeout != 2*time.Second || c.Dialer.Timeout != 3*time.Second ||
		c.Sentinel.Dialer.Timeout != 3*time.Second || a.prefix != "shop" || c.ClientName != "me" {
		t.Errorf("%+v", a)
	}
	if a, err = parseURL("redis://:p%40ss@host"); err != nil || a.client.Password != "p@ss" || a.client.Username != "" {
		t.Error(a, err)
	}
}

// Each error names the part, its value, and what would be accepted, and none shows a password.
func TestURLIsRefused(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"":                                                 {"scheme", `""`, "redis+sentinel://"},
		"localhost:6379":                                   {"scheme", "redis://"},
		"http://host":                                      {"scheme", `"http"`, "redis://"},
		"redis://":                                         {"host", `""`, "host:port"},
		"redis://u:hunter2@":                               {"host", `""`},
		"redis://a,b":                                      {"host", `"a,b"`, "host:port"},
		"redis://a:b:c":                                    {"host", `"a:b:c"`, "host:port"},
		"redis://a:0":                                      {"port", `"0"`, "1 to 65535"},
		"redis://a:http":                                   {"port", `"http"`, "1 to 65535"},
		"redis://a/zero":                                   {"database", `"zero"`, "number"},
		"redis://a/-1":                                     {"database", `"-1"`, "number"},
		"redis://a/1/2":                                    {"database", `"1/2"`, "number"},
		"redis+cluster://a/1":                              {"database", `"1"`, "cluster"},
		"redis+cluster://a,":                               {"host", `""`, "several"},
		"redis+sentinel://a":                               {"path", `""`, "/name"},
		"redis+sentinel://a/m/x":                           {"database", `"x"`},
		"redis://u%zz:hunter2@a":                           {"user", "not shown"},
		"redis://u:hunter2%zz@a":                           {"password", "not shown"},
		"redis://user:hunter2/hunter@host:1/0":             {"@", "%XX"},
		"redis://:hunter2/hunter@h:1":                      {"@", "%XX"},
		"redis://:hun?hunter2@h:1":                         {"@", "%XX"},
		"redis://user:12?hunter=x@h":                       {"@", "%XX"},
		"redis://u:12#hunter2@h":                           {"@", "%XX"},
		"redis://hunter2%zz@h":                             {"user", "not shown"},
		"hunter2@h://x":                                    {"scheme", `""`},
		"redis+sentinel://u:hunter2/m@h/m":                 {"@", "%XX"},
		"redis://a?timeout=5":                              {"timeout", `"5"`, "500ms"},
		"redis://a?timeout=-1s":                            {"timeout", `"-1s"`, "more than 0"},
		"redis://a?dial_timeout=0s":                        {"dial_timeout", `"0s"`},
		"redis://a?max_calls=0":                            {"max_calls", `"0"`, "1 to 65536"},
		"redis://a?lazy=maybe":                             {"lazy", `"maybe"`, "true or false"},
		"redis://a?pool=5":                                 {"parameter", `"pool"`, "timeout, dial_timeout, max_calls, lazy, prefix"},
		"redis://a?prefix=a&prefix=b":                      {"prefix", "twice", "once"},
		"redis://a?x=%zz":                                  {"query"},
		"redis://a?ca=x":                                   {"parameter", `"ca"`, "with TLS"},
		"redis://a?sentinel_password=x":                    {"parameter", `"sentinel_password"`, "with sentinels"},
		"rediss://a?insecure_skip_verify=maybe":            {"insecure_skip_verify", `"maybe"`, "true or false"},
		"rediss://a?cert=x":                                {"cert and key", "both"},
		"rediss://a?cert=/nowhere/x&key=/nowhere/y":        {"cert", "/nowhere/x"},
		"rediss://a?ca=/nowhere/x":                         {"ca", "/nowhere/x"},
		"rediss://a?ca=" + garbage:                         {"ca", garbage, "PEM"},
		"redis://u:hunter2@a?sentinel_password=hunter2":    {"parameter"},
		"redis://u:hunter2@a:b:c?sentinel_password=hunter": {"host"},
	} {
		_, err := parseURL(text)
		if err == nil {
			t.Errorf("%s is accepted", text)
			continue
		}
		if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v shows the password", text, err)
		}
		for _, part := range append(want, "redis: URL has", "") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %s", text, err, part)
			}
		}
	}
	if _, err := parseURL("rediss://a?ca=/nowhere/x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Nothing that goes out of parseURL makes it panic.
func FuzzURL(f *testing.F) {
	for _, text := range []string{"redis://u:p@h:1/2?timeout=1s", "redis+sentinel://a,b/m/2", "rediss+cluster://[::1]:1,x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseURL(text)
		if err == nil && (len(a.client.InitAddress) == 0 || slices.Contains(a.client.InitAddress, "")) {
			t.Errorf("%q leads nowhere", text)
		}
	})
}
