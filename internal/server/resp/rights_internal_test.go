package resp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/guard"
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

// usersServer returns a server with the user alice, whose secret is "secret".
func usersServer(t *testing.T) *Server {
	t.Helper()
	hash, err := access.Hash("secret")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte("user alice on "+hash+" +take ~name:a* ~name: ~name:CL.THROTTLE ~key:key:* ~key:x*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newTestServer()
	if server.options.Users, err = access.Open(path, access.Options{}); err != nil {
		t.Fatal(err)
	}
	return server
}

// A connection without a user is cut, whatever it sends. One that has logged in stays.
func TestStrangersAreCut(t *testing.T) {
	server := usersServer(t)
	c := newConn(server, &script{}, 1)
	overdue := func(after time.Duration) bool {
		c.rounds.Store(1) // it waits for input
		why, cut := server.overdue(c, time.Now().Add(after))
		if cut && why != guard.Login {
			t.Errorf("it is cut for %v", why)
		}
		return cut
	}
	within, over := server.options.AuthTimeout/2, server.options.AuthTimeout
	for _, input := range []string{"RESET\r\n", "PING\r\n", "AUTH alice wrong\r\n", "AUTH a"} {
		c.feed([]byte(input))
		if overdue(within) || !overdue(over) {
			t.Errorf("after %q it is overdue: %v, then %v", input, overdue(within), overdue(over))
		}
	}
	c.feed([]byte("b\r\nAUTH alice secret\r\n"))
	if overdue(over) {
		t.Error("a connection with a user is overdue")
	}
	c.feed([]byte("RESET\r\n"))
	if overdue(within) || !overdue(over) {
		t.Error("after its end a login goes on")
	}
}

// The rights of a user cost no allocation.
func TestRightsAllocateNothing(t *testing.T) {
	server := usersServer(t)
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
