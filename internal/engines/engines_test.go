package engines_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/engines"
	"github.com/weirlimit/weir/store"
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

func TestWarnings(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	const exposed, keys, skipped, unverified = "the password and the keys", "the keys, which may be names", "the certificate of the server is not verified", "sslmode=verify-full verifies it"
	for url, want := range map[string]string{
		"redis://u:p@10.0.0.1:6379":                     exposed,
		"redis://u:p@redis.internal":                    exposed,
		"redis+cluster://u:p@127.0.0.1,10.0.0.2:7":      exposed,
		"redis+sentinel://:p@[fe80::1]:5/name":          exposed,
		"redis://10.0.0.1:6379":                         keys,
		"redis+cluster://127.0.0.1,cache":               keys,
		"redis://u:p@127.0.0.1:6379":                    "",
		"redis://u:p@localhost/3":                       "",
		"redis://u:p@[::1]:6379":                        "",
		"redis://[::1]":                                 "",
		"rediss://u:p@10.0.0.1":                         "",
		"rediss://10.0.0.1?insecure_skip_verify=false":  "",
		"rediss://10.0.0.1?insecure_skip_verify=true":   skipped,
		"rediss://localhost?insecure_skip_verify=1":     "",
		"postgres://u:p@10.0.0.1/db":                    unverified,
		"postgresql://db.internal/db?sslmode=disable":   unverified,
		"postgres://10.0.0.1/db?sslmode=allow":          unverified,
		"postgres://10.0.0.1/db?sslmode=prefer":         unverified,
		"postgres://10.0.0.1/db?sslmode=require":        unverified,
		"postgres://10.0.0.1/db?sslmode=verify-ca":      unverified,
		"postgres://10.0.0.1/db?sslmode=verify-full":    "",
		"postgres://u@127.0.0.1,10.0.0.1/db":            unverified,
		"postgres://db/db?weir_table=t&weir_timeout=1s": unverified,
		"postgres://127.0.0.1/db":                       "",
		"postgres://localhost/db?sslmode=disable":       "",
		"postgres://[::1]:5/db":                         "",
		"postgres:///db?host=/run/postgresql":           "",
		"memcached://10.0.0.1":                          "",
		"weir://10.0.0.1":                               "weirs://",
		"memory":                                        "",
		"sqlite:clients.db":                             "",
		"redis://u:p@a:1@b":                             exposed, // not opened
	} {
		if got := engines.Warning(url); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestSuggestions(t *testing.T) {
	for url, want := range map[string]string{
		"redi://h": "redis", "reddis://h": "redis", "redsi://h": "redis", "Redis://h": "redis", "redis+clutser://h": "redis+cluster", "valkey://h": "redis", "postgre://h": "postgres",
		"postgress://h": "postgres", "pg://h": "postgres", "memcache://h": "memcached", "wier://h": "weir", "mysql://h": "", "redis://h": "", "": "", "redi:h": "", "://h": "", "h": "",
	} {
		if want != "" {
			want = "; did you mean " + want + "://?"
		}
		if got := engines.Suggestion(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
		if _, err := engines.Open(t.Context(), url, engines.Options{}); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", url, err)
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

// A lazy store is there at once, and its state shows why it does not serve.
func TestLazy(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1", "postgres://u@127.0.0.1:1/db", "memcached://127.0.0.1:1", "weir://127.0.0.1:1"} {
		if _, err := engines.Open(t.Context(), url, engines.Options{}); err == nil {
			t.Errorf("%s was opened", url)
		}
		s, err := engines.Open(t.Context(), url, engines.Options{Lazy: true})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		b, err := s.Bind(store.Spec{Limit: algorithm.MustParseLimit("5/1m")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Do(t.Context(), "key", algorithm.Op{Cost: 1}, store.OwnClock)
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrNothingDone) {
			t.Errorf("%s: %v", url, err)
		}
		for !strings.Contains(fmt.Sprint(s.Breaker().State().Cause), "refused") {
			time.Sleep(time.Millisecond)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := engines.Open(t.Context(), "redis://a:b:c", engines.Options{Lazy: true}); err == nil {
		t.Error("a URL that makes no sense was opened")
	}
}
