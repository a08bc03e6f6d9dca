package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server"
)

// The audit log has users, addresses and operations of all protocols, and no secret.
func TestAuditLog(t *testing.T) {
	path := usersFile(t, "user alice on SECRET +@all ~*\n")
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	config := written(t, "policies: [{name: a, key: all, limits: [1/1s]}]")
	s := start(t, server.Config{Users: path, Audit: log, Policies: config})
	const key = "sk_live_0123456789abcdef"
	cli := []string{"-h", "127.0.0.1", "-p", port(s.RESPAddr()), "--no-auth-warning"}
	as := append(cli, "--user", "alice", "--pass", "secret") //nolint:gocritic // another list
	program(t, "redis-cli", append(as, "WEIR.REFUND", key, "9/1h", "COST", "2", "NAME", "api")...)
	program(t, "redis-cli", append(as, "WEIR.RESET", key, "9/1h")...)
	program(t, "redis-cli", append(as, "WEIR.TAKE", key, "9/1h")...) // not recorded
	program(t, "redis-cli", append(cli, "--user", "alice", "--pass", "hunter2", "PING")...)
	program(t, "redis-cli", append(cli, "--user", "a-secret-as-a-name", "--pass", "x", "PING")...)
	for _, path := range []string{"/v1/refund", "/v1/reset"} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTPAddr().String()+path, strings.NewReader(`{"key":"`+key+`","limit":"9/1h"}`))
		r.SetBasicAuth("alice", "secret")
		res, err := http.DefaultClient.Do(r)
		read(t, res, err)
	}
	if err := os.Rename(log, log+".1"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, config} {
		if err := os.WriteFile(file, []byte("user"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Reload(); err == nil {
		t.Error("broken files are in use")
	}
	content := func() (text string) {
		for _, name := range []string{log + ".1", log} {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		return text
	}
	for _, want := range []string{
		`"event":"refund","user":"alice","from":"127.0.0.1:`, `"protocol":"resp","name":"api","limit":"9/1h","key":"sk_l…#`, `"units":2,"result":"ok"`,
		`"event":"reset","user":"alice"`, `"protocol":"http","limit":"9/1h","key":"sk_l…#`,
		`"event":"login","user":"alice","from":"127.0.0.1:`, `"result":"refused","detail":"wrong user or secret"`, `"event":"login","user":"a-se…#`,
		`"event":"change","source":"users","file":"` + path + `","result":"refused","detail":"` + path + `:1`,
		`"event":"change","source":"policies","file":"` + config + `","result":"refused"`,
	} {
		for !strings.Contains(content(), want) { // until the test's deadline
			time.Sleep(10 * time.Millisecond)
		}
	}
	text := content()
	for _, secret := range []string{key, "hunter2", "a-secret-as-a-name", `"event":"take"`} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}

func TestAuditFileIsRefused(t *testing.T) {
	s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: server.Off, Audit: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "audit ") || !strings.Contains(err.Error(), "accepted: a regular file") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
