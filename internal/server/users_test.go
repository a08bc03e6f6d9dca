package server_test

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/testcert"
)

// usersFile returns the path of a file of users. SECRET in the text stands for the hash of "secret".
func usersFile(t *testing.T, text string) string {
	t.Helper()
	hash, err := access.Hash("secret")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "SECRET", hash)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// One table of users holds for all protocols, and a change of the file for open connections.
func TestUsersWithRealPrograms(t *testing.T) {
	path := usersFile(t, "user alice on SECRET +take ~*\nuser ops on SECRET +admin\n")
	s := start(t, server.Config{Users: path})
	cli := []string{"-h", "127.0.0.1", "-p", port(s.RESPAddr()), "--no-auth-warning"}
	if got := program(t, "redis-cli", append(cli, "--user", "alice", "--pass", "secret", "WEIR.TAKE", "k", "5/1h")...); !strings.HasPrefix(got, "1\n5\n4\n") {
		t.Errorf("redis-cli prints %q", got)
	}
	if got := program(t, "redis-cli", append(cli, "WEIR.TAKE", "k", "5/1h")...); !strings.Contains(got, "NOAUTH Authentication required.") {
		t.Errorf("redis-cli without a user prints %q", got)
	}
	take := []string{"-sS", "-d", `{"key":"k","limit":"5/1h"}`, "http://" + s.HTTPAddr().String() + "/v1/take"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append([]string{"-u", "alice:secret"}, take...), `{"allowed":true,"limit":5,"remaining":3`},
		{append([]string{"--oauth2-bearer", "alice~secret"}, take...), `{"allowed":true,"limit":5,"remaining":2`},
		{take, `"status":401`},
		{append([]string{"-u", "ops:secret"}, take...), `"status":403`},
		{[]string{"-sS", "http://" + s.HTTPAddr().String() + "/healthz"}, "ok"},
		{[]string{"-sS", "http://" + s.AdminAddr().String() + "/metrics"}, `"status":401`},
		{[]string{"-sS", "-u", "ops:secret", "http://" + s.AdminAddr().String() + "/metrics"}, "weir_connections"},
		{[]string{"-sS", "-u", "ops:secret", "http://" + s.AdminAddr().String() + "/v1/status"}, `"users":2`},
	} {
		if got := program(t, "curl", c.args...); !strings.Contains(got, c.want) {
			t.Errorf("curl %q prints %.300s", c.args, got)
		}
	}
	if err := os.WriteFile(path, []byte("user"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), path+":1") {
		t.Errorf("a broken file: %v", err)
	}
	ready := program(t, "curl", "-sS", "http://"+s.AdminAddr().String()+"/readyz")
	if !strings.Contains(ready, "warning: the last change of the users is refused") {
		t.Errorf("/readyz prints %s", ready)
	}
}

func TestUsersByCertificate(t *testing.T) {
	a := testcert.New(t)
	cfg, _ := secure(t, a)
	cfg.TLSClientCA = a.File
	cfg.Users = usersFile(t, "user orders on cert:cn:orders +take ~*\nuser one on cert:cn:both +take ~*\nuser other on cert:dns:both +take ~*\n")
	s := start(t, cfg)
	for name, want := range map[string]string{"orders": "orders", "others": "NOAUTH", "both": "NOAUTH"} {
		pair := a.Issue(t, name)
		got := program(t, "redis-cli", "-p", port(s.RESPAddr()), "--tls", "--cacert", a.File, "--cert", pair.Cert, "--key", pair.Key, "ACL", "WHOAMI")
		if !strings.Contains(got, want) {
			t.Errorf("the user of %s is %q", name, got)
		}
		config := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{pair.Load(t)}}
		body, err := tlsGet(t, s, config, "/openapi.yaml")
		if err != nil || strings.Contains(body, "openapi: 3.1.0") != (name == "orders") {
			t.Errorf("over HTTPS %s gets %.100s, error %v", name, body, err)
		}
	}
}

func TestUsersFileIsRefused(t *testing.T) {
	open := usersFile(t, "user a off")
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "--users", open: "mode 0644 lets everybody read or write it", t.TempDir(): "is no regular file",
		usersFile(t, "user a on"): ":1: user a has neither a secret nor a certificate",
	} {
		s, err := server.New(server.Config{RESP: "0", HTTP: "0", Admin: server.Off, Users: path})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Open(t.Context()); err == nil || !strings.Contains("--"+err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
