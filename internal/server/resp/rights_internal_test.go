package resp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/guard"
)

// A command that decides needs a right, and so does one that shows other connections or parameters. A
// command without a right in its table needs all.
func TestEachCommandHasARight(t *testing.T) {
	public, anyUser := []string{}, []string{}
	for _, cmd := range commands() {
		switch {
		case cmd.public:
			public = append(public, cmd.name)
		case cmd.anyUser:
			anyUser = append(anyUser, cmd.name)
		case cmd.right == access.None:
			t.Errorf("command %s needs no right", cmd.name)
		case cmd.decides() && cmd.right&(access.Take|access.Check|access.Refund) != cmd.right:
			t.Errorf("command %s decides, and needs the right %v", cmd.name, cmd.right)
		}
		if cmd.decides() && (cmd.public || cmd.anyUser) {
			t.Errorf("command %s decides, and is for everybody", cmd.name)
		}
	}
	slices.Sort(public)
	slices.Sort(anyUser)
	if got, want := strings.Join(public, " "), "auth hello quit reset"; got != want {
		t.Errorf("for connections without a user are %s, want %s", got, want)
	}
	if got, want := strings.Join(anyUser, " "), "acl client command discard echo exec info multi ping select"; got != want {
		t.Errorf("for any user are %s, want %s", got, want)
	}
	if right := rightOf(&command{name: "a.new.command"}); right != access.All {
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
