package resp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weirlimit/weir/internal/server/access"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/policy"
)

// hashed is the hash of the secret "secret", which all users of the tests have.
var hashed = sync.OnceValue(func() string {
	h, err := access.Hash("secret")
	if err != nil {
		panic(err)
	}
	return h
})

// usersOf returns users with lines such as "alice +take ~*", and the path of their file.
func usersOf(t testing.TB, lines ...string) (u *access.Users, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "users")
	writeUsers(t, path, lines...)
	u, err := access.Open(path, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u, path
}

func writeUsers(t testing.TB, path string, lines ...string) {
	t.Helper()
	var text strings.Builder
	for _, line := range lines {
		name, words, _ := strings.Cut(line, " ")
		text.WriteString("user " + name + " on " + hashed() + " " + words + "\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	noAuth    = "NOAUTH Authentication required."
	wrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	noKey     = "NOPERM No permissions to access a key"
)

// Replies are those of Redis.
func TestAuth(t *testing.T) {
	users, _ := usersOf(t, "alice +take ~name:* ~key:a*", "default +@all ~*")
	_, address := start(t, resp.Options{Service: &operation.Service{Users: users}})
	c := dial(t, address)
	for _, command := range []string{"PING", "WEIR.TAKE k 1/1m", "INFO", "COMMAND COUNT", "CLIENT LIST", "ACL WHOAMI", "MULTI", "EXEC", "CONFIG GET *", "SELECT 0", "CL.THROTTLE k 1 1 1"} {
		c.expect([2]string{command, noAuth})
	}
	helloFirst := "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to " +
		"authenticate the client and select the RESP protocol version at the same time"
	c.expect([2]string{"HELLO", helloFirst})
	c.expect([2]string{"HELLO 3", helloFirst})
	c.expect([2]string{"HELLO 2 SETNAME x", helloFirst})
	c.expect([2]string{"HELLO 3 AUTH alice wrong", wrongPass})
	c.expect([2]string{"AUTH nobody secret", wrongPass})
	c.expect([2]string{"AUTH alice wrong", wrongPass})
	c.expect([2]string{"AUTH wrong", wrongPass})
	c.expect([2]string{"AUTH a b c", "ERR syntax error"})
	c.expect([2]string{"PING", noAuth})
	c.expect([2]string{"AUTH alice secret", "OK"})
	c.expect([2]string{"ACL WHOAMI", "alice"})
	c.expect([2]string{"PING", "PONG"})
	c.expect([2]string{"AUTH alice wrong", wrongPass})
	c.expect([2]string{"ACL WHOAMI", "alice"}) // as before
	c.expect([2]string{"CLIENT LIST", "NOPERM User alice has no permissions to run the 'client|list' command"})
	c.expect([2]string{"CONFIG GET *", "NOPERM User alice has no permissions to run the 'config' command"})
	c.expect([2]string{"AUTH secret", "OK"})
	c.expect([2]string{"ACL WHOAMI", "default"})
	c.send("CLIENT LIST\r\n")
	if list := c.reply(); !strings.Contains(list, " user=default ") {
		t.Errorf("CLIENT LIST is %s", list)
	}
	c.expect([2]string{"RESET", "RESET"})
	c.expect([2]string{"PING", noAuth})
	c.send("HELLO 2 SETNAME pool AUTH alice secret\r\n")
	if hello := c.reply(); !strings.Contains(hello, "weir") {
		t.Errorf("HELLO is %s", hello)
	}
	c.expect([2]string{"CLIENT GETNAME", "pool"})
	c.send("CLIENT INFO\r\n")
	if list := c.reply(); !strings.Contains(list, " user=alice ") {
		t.Errorf("CLIENT INFO is %s", list)
	}
	c.expect([2]string{"ACL LIST", `ERR unknown subcommand or wrong number of arguments for "LIST"; accepted: WHOAMI`})
	c.expect([2]string{"QUIT", "OK"})
}

// clients are the clients of a server, by user.
type clients map[string]*client

// loggedIn connects a client for each user.
func loggedIn(t *testing.T, address string, users ...string) clients {
	t.Helper()
	of := clients{}
	for _, name := range users {
		of[name] = dial(t, address)
		of[name].expect([2]string{"AUTH " + name + " secret", "OK"})
	}
	return of
}

func (of clients) send(name, command string) (reply string) {
	of[name].send(command + "\r\n")
	return of[name].reply()
}

// refused requires that the user has no right to the command.
func (of clients) refused(t *testing.T, name, command string) {
	t.Helper()
	if got := of.send(name, command); !strings.HasPrefix(got, "NOPERM ") {
		t.Errorf("%s: %s: %s", name, command, got)
	}
}

const rightOfTaker = "taker +take ~name:api:* ~name: ~name:CL.THROTTLE ~key:a*"

// A command without a right to its name or key changes nothing.
func TestRightsOfCommands(t *testing.T) {
	users, _ := usersOf(t, "all +@all ~*", rightOfTaker, "refunder +refund ~name:api:* ~key:a*", "checker +check ~policy:p ~key:*", "admin +admin")
	set := policies(t, `
policies:
  - {name: p, match: {path: /p*}, key: all, limits: [5/1h]}
  - {name: q, match: {path: /p/q}, key: all, limits: [5/1h]}
  - {name: s, match: {path: /p/s}, key: all, limits: [5/1h], mode: shadow}
`)
	_, address := start(t, resp.Options{Service: &operation.Service{Users: users, Policies: set}})
	of := loggedIn(t, address, "all", "taker", "refunder", "checker", "admin")
	refused := func(name, command string) {
		t.Helper()
		of.refused(t, name, command)
	}
	passes := func(name, command string) {
		t.Helper()
		if got := of.send(name, command); strings.HasPrefix(got, "NO") || strings.HasPrefix(got, "ERR") {
			t.Errorf("%s: %s: %s", name, command, got)
		}
	}
	takes := []string{
		"WEIR.TAKE %k 9/1h NAME %n", "WEIR.TAKEUPTO %k 9/1h NAME %n", "WEIR.PEEK %k 9/1h NAME %n", "WEIR.TAKE %k 9/1h NAME %n NS",
		"WEIR.RESERVE %k 9/1h ID 7 LIFE 1000000 NAME %n", "WEIR.COMMIT %k 9/1h ID 7 NAME %n", "WEIR.RENEW %k 'concurrent 3 lease=30s' END 0 NAME %nl", "WEIR.CANCEL %k 'concurrent 3 lease=30s' END 0 NAME %nl",
		"WEIR.TAKEALL %k 9/1h NAME %n", "WEIR.TAKEALL abc 9/1h NAME api:x AND %k 9/1h NAME %n",
	}
	refunds := []string{"WEIR.REFUND %k 9/1h NAME %n", "WEIR.RESET %k 9/1h NAME %n"}
	fill := func(command, name, key string) string {
		return strings.NewReplacer("%k", key, "%n", name).Replace(command)
	}
	for _, command := range takes {
		passes("taker", fill(command, "api:1", "ab"))
		refused("taker", fill(command, "api", "ab"))
		refused("taker", fill(command, "api:1", "b"))
		refused("refunder", fill(command, "api:1", "ab"))
		refused("checker", fill(command, "api:1", "ab"))
		refused("admin", fill(command, "api:1", "ab"))
		passes("all", fill(command, "x", "y"))
	}
	for _, command := range refunds {
		passes("refunder", fill(command, "api:1", "ab"))
		refused("refunder", fill(command, "api", "ab"))
		refused("refunder", fill(command, "api:1", "b"))
		refused("taker", fill(command, "api:1", "ab"))
	}
	refused("taker", "WEIR.CANCEL ab 9/1h END 0 NAME api:1") // gives units back
	passes("all", "WEIR.CANCEL ab 9/1h END 0 NAME api:1")
	for _, command := range []string{"WEIR.TAKE %k 9/1h", "CL.THROTTLE %k 9 1 60", "THROTTLE %k 9 1 60", "RL.REDUCE %k 9 60", "RL.GET %k 9 60", "RL.PREDUCE %k 9 60", "RL.PGET %k 9 60"} {
		passes("taker", fill(command, "", "ab"))
		refused("taker", fill(command, "", "b"))
		refused("admin", fill(command, "", "ab"))
	}
	passes("checker", "WEIR.CHECK PATH /p")
	refused("checker", "WEIR.CHECK PATH /p/q") // q matches too
	refused("checker", "WEIR.CHECK PATH /p/s") // a shadow counts too
	refused("taker", "WEIR.CHECK PATH /p")
	refused("taker", "WEIR.CHECK.CANCEL token")
	of["checker"].expect([2]string{"WEIR.CHECK.CANCEL token", "ERR this is no token; accepted: the one of a decision, as it was given"})
	passes("admin", "CONFIG GET timeout")

	if got := of.send("all", "WEIR.PEEK ab 9/1h NAME api"); !strings.HasPrefix(got, "[1 9 9 ") {
		t.Errorf("refused commands charged the key: %s", got)
	}
	if got := of.send("all", "WEIR.CHECK PATH /p"); !strings.HasPrefix(got, "[1 5 3 ") {
		t.Errorf("two checks that passed: %s", got)
	}
}

// A transaction needs its rights when it is queued and when it is carried out.
func TestRightsOfTransactions(t *testing.T) {
	users, path := usersOf(t, "all +@all ~*", rightOfTaker)
	_, address := start(t, resp.Options{Service: &operation.Service{Users: users}})
	of := loggedIn(t, address, "all", "taker")
	of["taker"].expect([2]string{"MULTI", "OK"})
	of.refused(t, "taker", "WEIR.RESET ab 9/1h NAME api:1")
	of["taker"].expect([2]string{"EXEC", "EXECABORT Transaction discarded because of previous errors."})

	// the right goes before the transaction is carried out
	of["taker"].expect([2]string{"MULTI", "OK"})
	of["taker"].expect([2]string{"WEIR.TAKE ab 9/1h NAME api:2", "QUEUED"})
	writeUsers(t, path, "taker +take ~name:other ~key:*")
	if err := users.Reload(); err != nil {
		t.Fatal(err)
	}
	of["taker"].expect([2]string{"EXEC", "[" + noKey + "]"})
	of["all"].expect([2]string{"PING", noAuth}) // gone

	writeUsers(t, path, "all +@all ~*")
	if err := users.Reload(); err != nil {
		t.Fatal(err)
	}
	of["all"].expect([2]string{"AUTH all secret", "OK"})
	if got := of.send("all", "WEIR.PEEK ab 9/1h NAME api:2"); !strings.HasPrefix(got, "[1 9 9 ") {
		t.Errorf("the refused transaction charged the key: %s", got)
	}
}

func policies(t *testing.T, text string) *policy.Set {
	t.Helper()
	c, err := policy.Parse([]byte(text), "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.New(c, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// A connection without a user may send short commands only.
func TestStrangersAreBounded(t *testing.T) {
	users, _ := usersOf(t, "alice +take ~*")
	_, address := start(t, resp.Options{Service: &operation.Service{Users: users}})
	for _, input := range []string{
		"*2\r\n$4\r\nAUTH\r\n$5000\r\n", "*11\r\n", "AUTH " + strings.Repeat("x", 5000), "*1024\r\n",
	} {
		c := dial(t, address)
		c.send(input)
		if got := c.reply(); !strings.HasPrefix(got, "ERR Protocol error") {
			t.Errorf("%.20q: %s", input, got)
		}
	}
	c := dial(t, address) // the bound ends with the login, in one write
	long := strings.Repeat("k", 20_000)
	c.send("*3\r\n$4\r\nAUTH\r\n$5\r\nalice\r\n$6\r\nsecret\r\n*3\r\n$9\r\nWEIR.TAKE\r\n$20000\r\n" + long + "\r\n$4\r\n9/1h\r\n")
	if got := c.reply(); got != "OK" {
		t.Fatal(got)
	}
	if got := c.reply(); !strings.HasPrefix(got, "[1 9 8 ") {
		t.Error(got)
	}
}

// redis-cli logs in with --user and --pass.
func TestRedisCLILogsIn(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip(err)
	}
	users, _ := usersOf(t, "alice +take ~*")
	_, address := start(t, resp.Options{Service: &operation.Service{Users: users}})
	_, port, _ := strings.Cut(address, ":")
	run := func(args ...string) string {
		t.Helper()
		out, _ := exec.Command(cli, append([]string{"-p", port, "--no-auth-warning"}, args...)...).CombinedOutput()
		return strings.Join(strings.Fields(string(out)), " ")
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--user", "alice", "--pass", "secret", "WEIR.TAKE", "k", "9/1h"}, "1 9 8"},
		{[]string{"--user", "alice", "--pass", "secret", "-3", "ACL", "WHOAMI"}, "alice"},
		{[]string{"PING"}, "NOAUTH Authentication required."},
		{[]string{"--user", "alice", "--pass", "wrong", "PING"}, "WRONGPASS"},
	} {
		if got := run(c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%q: %s", c.args, got)
		}
	}
}
