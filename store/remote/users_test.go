package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/internal/server"
	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/remote"
)

// A store logs in with the user of its URL, and has its rights.
func TestStoreLogsIn(t *testing.T) {
	hash, err := access.Hash("p@ss")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	text := "user web on " + hash + " +take +refund ~*\nuser api on " + hash + " +take ~name:api ~name:weir.check ~key:*\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, server.Config{Users: path})
	open := func(user string) (*remote.Store, error) {
		return remote.Open(t.Context(), "weir://"+user+d.cfg.RESP, remote.Options{Timeout: patience})
	}
	take := func(s *remote.Store, name string) error {
		limit, err := algorithm.ParseLimit("5/1h")
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Bind(store.Spec{Name: name, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Do(t.Context(), "k", algorithm.Op{Kind: algorithm.Take, Cost: 1}, store.OwnClock)
		return err
	}
	for _, user := range []string{"", "web:wrong@", "nobody:p%40ss@"} {
		s, err := open(user)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || strings.Contains(err.Error(), "wrong@") || strings.Contains(err.Error(), "p%40ss") || strings.Contains(err.Error(), "p@ss") {
			t.Errorf("as %q: %v", user, err)
		}
	}
	for _, c := range []struct{ user, name, want string }{
		{"web:p%40ss@", "any", ""}, {"web:p%40ss@", "", ""}, {"api:p%40ss@", "api", ""}, {"api:p%40ss@", "any", "NOPERM"},
	} {
		s, err := open(c.user)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("as %s: Check: %v", c.user, err)
		}
		if err := take(s, c.name); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("as %s, name %q: %v, want %q", c.user, c.name, err, c.want)
		}
		_ = s.Close()
	}
}
