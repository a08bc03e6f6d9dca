package resp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlimit/weir/server/access"
)

// Each command has a right, and each right a command.
func TestEachCommandHasARight(t *testing.T) {
	all := commands()
	for name, cmd := range all {
		right, ok := rights[cmd.name]
		switch {
		case !ok:
			t.Errorf("command %s has no right: it is in no line of rights", name)
		case cmd.decides && (right == access.None || right == public):
			t.Errorf("command %s decides, and needs no right", name)
		}
	}
	if n := len(all) + 1; len(rights) != n { // client|list
		t.Errorf("%d rights for %d commands and subcommands", len(rights), n)
	}
	if right, public := rightOf("a.new.command"); right != access.All || public {
		t.Errorf("a command without a right has %v", right)
	}
}

// The rights of a user cost no allocation.
func TestRightsAllocateNothing(t *testing.T) {
	hash, err := access.Hash("secret")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("user alice on "+hash+" +take ~name:a* ~name: ~name:CL.THROTTLE ~key:key:* ~key:x*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.Open(path, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := newTestServer()
	server.options.Users = users
	for name, command := range hotCommands {
		client := &script{}
		c, input := newConn(server, client, 1), pipeline(64, command)
		if !c.authenticate("alice", "secret") {
			t.Fatal("no login")
		}
		round := func() {
			c.in = append(c.in[:0], input...)
			c.start, c.end = 0, len(input)
			c.run()
			c.publish()
			client.replies.Reset()
			c.flush()
		}
		round() // the keys are stored, and buffers take their size
		if n := testing.AllocsPerRun(100, round); n != 0 {
			t.Errorf("64 of %s allocate %v times", name, n)
		}
		if c.counts.Errors != 0 {
			t.Errorf("%s ends with errors", name)
		}
	}
}
