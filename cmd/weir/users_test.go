package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/access"
)

func TestUsersAddCheckAndDelete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	run := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		out, log, code := runProgram(args...)
		if code != wantCode {
			t.Errorf("%q: exit code %d, want %d: %s%s", args, code, wantCode, out, log)
		}
		return out, log
	}
	secret, _ := run(exitOK, "users", "add", "alice", "--users", path, "--rights", "+take +check ~policy:login ~name:api:* ~key:user:*")
	if secret = strings.TrimSpace(secret); len(secret) != 32 {
		t.Errorf("the secret is %q", secret)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	users, err := access.Open(path, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if u, err := users.Login(context.Background(), "alice", secret, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil || u.Name() != "alice" {
		t.Errorf("the secret does not log in: %v", err)
	}
	if out, _ := run(exitOK, "users", "add", "web", "--users", path, "--cert", "dns:web.example.com", "--rights", "+admin"); out != "" {
		t.Errorf("a user by certificate has the secret %q", out)
	}
	if _, log := run(exitError, "users", "add", "alice", "--users", path); !strings.Contains(log, "user alice exists in "+path+"; accepted: another name, or --replace") {
		t.Error(log)
	}
	if _, log := run(exitError, "users", "add", "bob", "--users", path, "--rights", "+take"); !strings.Contains(log, "no ~name: pattern") {
		t.Error(log)
	}
	if out, _ := run(exitOK, "users", "list", "--users", path); out != "user alice on 1 secret +take +check ~policy:login ~name:api:* ~key:user:*\nuser web on cert:dns:web.example.com +admin\n" {
		t.Error(out)
	}
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{}, path + ": 2 users\n", exitOK},
		{[]string{"alice"}, "user alice on 1 secret +take", exitOK},
		{[]string{"alice", "take", "api:v1", "user:7"}, "yes\n", exitOK},
		{[]string{"alice", "take", "web", "user:7"}, `no: no pattern matches the name "web": ~name:api:*`, exitError},
		{[]string{"alice", "take", "api:v1", "7"}, `no: no pattern matches the key "7": ~key:user:*`, exitError},
		{[]string{"alice", "admin"}, "no: user alice does not have the right admin", exitError},
		{[]string{"web", "admin"}, "yes\n", exitOK},
	} {
		if out, _ := run(c.code, append([]string{"users", "check", "--users", path}, c.args...)...); !strings.HasPrefix(out, c.want) {
			t.Errorf("check %q prints %q, want %q", c.args, out, c.want)
		}
	}
	if _, log := run(exitError, "users", "check", "--users", path, "alice", "takes"); !strings.Contains(log, `right is "takes"; accepted: take, check, refund, admin`) {
		t.Error(log)
	}
	if _, log := run(exitError, "users", "check", "--users", path, "bob"); !strings.Contains(log, `user is "bob"; accepted: a user of`) {
		t.Error(log)
	}
	run(exitOK, "users", "delete", "--users", path, "alice")
	if _, log := run(exitError, "users", "delete", "--users", path, "alice"); !strings.Contains(log, `user is "alice"`) {
		t.Error(log)
	}
	if line, log := run(exitOK, "users", "add", "carol", "--rights", "+admin"); !strings.HasPrefix(line, "user carol on #$argon2id$") || !strings.Contains(log, "shown once: ") {
		t.Errorf("without a file: %q, %q", line, log)
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if _, log := run(exitError, "users", "check", "--users", path); !strings.Contains(log, "mode 0604 lets everybody read or write it") {
			t.Error(log)
		}
	}
}

// A secret from standard input has one line, and is not printed.
func TestUserSecretFromStandardInput(t *testing.T) {
	c := usersAdd{Stdin: true}
	for input, want := range map[string]string{"hunter2\n": "hunter2", "two words\r\nmore": "two words", "x": "x", "\n": "", "": "", strings.Repeat("x", 257): ""} {
		secret, err := c.secret(strings.NewReader(input))
		if err == nil && secret != want || (err != nil) != (want == "") {
			t.Errorf("%.10q: %q, %v", input, secret, err)
		}
	}
}
