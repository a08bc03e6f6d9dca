package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/store/memory"
)

const jobs = "policies: [{name: jobs, key: all, limits: [concurrent 9 lease=1h]}]"

// keyFile returns the path of a file with a key of n bytes.
func keyFile(t *testing.T, b byte, n int, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token.key")
	if err := os.WriteFile(path, bytes.Repeat([]byte{b}, n), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// Servers over one store settle each other's tokens if they share a key, and refuse them
// if not.
func TestServersShareTokenKeys(t *testing.T) {
	state := memory.New(memory.Options{})
	first, second := keyFile(t, 1, 32, 0o640), keyFile(t, 2, 4096, 0o400)
	run := func(keys ...string) *server.Server {
		return start(t, server.Config{Opened: state, Policies: written(t, jobs), TokenKeys: keys})
	}
	old, rotated, next, alone, other := run(first), run(second, first), run(second), run(), run()
	for _, c := range []struct {
		from, to *server.Server
		want     string
	}{
		{old, old, `{"settled":true}`}, {old, rotated, `{"settled":true}`}, {rotated, next, `{"settled":true}`}, {alone, alone, `{"settled":true}`},
		{rotated, old, `"status":400`}, {old, next, `"status":400`}, {alone, other, `"status":400`}, {alone, old, `"status":400`},
	} {
		var d struct{ Token string }
		if err := json.Unmarshal([]byte(post(t, c.from, "/v1/check", `{"path":"/"}`)), &d); err != nil || d.Token == "" {
			t.Fatalf("no token, error %v", err)
		}
		if got := post(t, c.to, "/v1/release", `{"token":"`+d.Token+`"}`); !strings.Contains(got, c.want) {
			t.Errorf("%s, want %s", got, c.want)
		}
		if c.want == `"status":400` {
			post(t, c.from, "/v1/release", `{"token":"`+d.Token+`"}`)
		}
	}
}

// A file unfit for a key is refused with its name, the reason, and the command for a good key.
func TestTokenKeysRefused(t *testing.T) {
	tests := map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file", t.TempDir(): "is no regular file", keyFile(t, 1, 31, 0o600): "31 bytes", keyFile(t, 1, 4097, 0o600): "more than 4096 bytes",
	}
	if runtime.GOOS != "windows" {
		tests[keyFile(t, 1, 32, 0o604)] = "mode 0604 lets everybody"
		tests[keyFile(t, 1, 32, 0o602)] = "mode 0602 lets everybody"
	}
	for path, want := range tests {
		s, err := server.New(server.Config{RESP: "0", HTTP: server.Off, Admin: server.Off, Policies: written(t, jobs), TokenKeys: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Open(context.Background())
		var config *server.ConfigError
		if !errors.As(err, &config) || config.Field != "token-key" || config.Value != path || !strings.Contains(config.Problem, want) || !strings.Contains(config.Accept, "umask 077") {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
		_ = s.Close()
	}
}
