package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/access"
)

func TestEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	content := func() string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := func(err, target error, text string) {
		t.Helper()
		if !errors.Is(err, target) {
			t.Fatalf("error %v, want %v", err, target)
		}
		if got := content(); got != text {
			t.Fatalf("the file is %q, want %q", got, text)
		}
		if _, err := os.Stat(path + ".new"); err == nil {
			t.Fatal("the new file is still there")
		}
	}
	const alice, bob = "user alice on cert:cn:alice +take ~*", "user bob off"
	want(access.Add(path, alice, false), nil, alice+"\n")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	want(access.Add(path, bob, false), nil, alice+"\n"+bob+"\n")
	want(access.Add(path, "user alice off", false), access.ErrExists, alice+"\n"+bob+"\n")
	want(access.Add(path, "user alice off", true), nil, "user alice off\n"+bob+"\n")
	want(access.Delete(path, "carol"), access.ErrUnknown, "user alice off\n"+bob+"\n")
	if err := os.WriteFile(path, []byte("# all\n\n  user  alice off\n"+bob), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	want(access.Delete(path, "alice"), nil, "# all\n\n"+bob+"\n")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
		t.Errorf("mode %v, error %v", info.Mode(), err)
	}
	for line, problem := range map[string]string{
		"user carol on": "has neither", "": "one user", bob + "\nuser dora off": "one user", "user eve on cert:cn:eve\n": "one user",
	} {
		if err := access.Add(path, line, true); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := os.WriteFile(path, []byte("user x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := access.Add(path, alice, false); err == nil || content() != "user x" {
		t.Errorf("an invalid file was edited: %v", err)
	}
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := access.Delete(path, "x"); err == nil || !strings.Contains(err.Error(), "another edit is under way") {
		t.Errorf("two edits at once: %v", err)
	}
}
