//go:build unix

package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weirlimit/weir/policy"
)

// What is no file is refused before it is opened, also behind a link: a pipe would be waited for.
func TestPipesAndDevicesAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{pipe: "is no regular file", link: "is no regular file", "/dev/zero": "is no regular file", dir: "is a directory"} {
		_, err := policy.Load(t.Context(), path, policy.Options{})
		var file *os.PathError
		if !errors.As(err, &file) || file.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	path := filepath.Join(dir, "weir.yaml")
	write(t, path, windowOf("10"))
	f := follow(t, path) // which ends when the test does
	if err := os.Rename(pipe, path); err != nil {
		t.Fatal(err)
	}
	f.until("refused", func() bool { return f.Status().Config.Err != nil })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	write(t, path, windowOf("20"))
	f.until("there again", func() bool { return f.capacity() == 20 })
}
