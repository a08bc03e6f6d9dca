package resp_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
)

// lacking says that a client is not there: a failure where the environment requires all of them.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("WEIR_ENGINES") == "require" {
		t.Fatalf("%s is missing, and WEIR_ENGINES=require", what)
	}
	t.Skipf("%s is missing: not tested with it", what)
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, &out, &errs)
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

func port(t *testing.T, address string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sameLines(t *testing.T, got, want string) {
	t.Helper()
	if got, want = strings.TrimSpace(got), strings.TrimSpace(want); got != want {
		t.Errorf("got\n%s\n\nwant\n%s", got, want)
	}
}

func TestRedisCLI(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		lacking(t, "redis-cli")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	cli := func(args ...string) string {
		return run(t, "redis-cli", append([]string{"--no-auth-warning", "-p", port(t, address)}, args...)...)
	}
	sameLines(t, cli("WEIR.TAKE", "user:42", "1/8760h"), "1\n1\n0\n0\n31536000000000\n0")
	if got := cli("-3", "WEIR.TAKE", "user:42", "1/8760h"); !strings.HasPrefix(got, "0\n1\n0\n3153") {
		t.Errorf("the second take, in RESP3: %q", got)
	}
	sameLines(t, cli("-3", "--user", "default", "--pass", "any", "-n", "0", "PING"), "PONG")
	sameLines(t, cli("CL.THROTTLE", "user123", "15", "30", "60"), "0\n16\n15\n-1\n2")
	sameLines(t, cli("RL.REDUCE", "twoPerMin", "2", "60"), "2")
	sameLines(t, cli("NONSENSE", "a b"), `ERR unknown command "NONSENSE", with args beginning with: "a b"`)
	if help := cli("--no-raw", "COMMAND", "DOCS", "weir.take"); !strings.Contains(help, "Asks to pass at a cost") {
		t.Errorf("COMMAND DOCS: %s", help)
	}
	if n := strings.Count(cli("-r", "3", "PING"), "PONG\n"); n != 3 {
		t.Errorf("three PINGs: %d answers", n)
	}
}

func TestRedisBenchmark(t *testing.T) {
	if _, err := exec.LookPath("redis-benchmark"); err != nil {
		lacking(t, "redis-benchmark")
	}
	server, address := start(t, resp.Options{Service: &operation.Service{}})
	out := run(t, "redis-benchmark", "-p", port(t, address), "-n", "2000", "-c", "10", "-P", "16", "-r", "100", "--csv",
		"WEIR.TAKE", "key:__rand_int__", "5/8760h")
	if !strings.Contains(out, "WEIR.TAKE") || strings.Contains(out, "WARN") {
		t.Errorf("redis-benchmark said:\n%s", out)
	}
	run(t, "redis-benchmark", "-p", port(t, address), "-n", "1000", "-c", "5", "-3", "-t", "ping", "-q")
	eventually(t, "every request is counted", func() bool { s := server.Stats(); return s.Allowed+s.Denied == 2000 })
	if s := server.Stats(); s.Allowed > 100*5 || s.Allowed < 100 {
		t.Errorf("of 2000 requests for 100 keys, 5 for each, %d were admitted", s.Allowed)
	}
}

func TestRedisPy(t *testing.T) {
	const python = "/usr/bin/python3" // the one that has the distribution's python3-redis
	if exec.Command(python, "-c", "import redis").Run() != nil {
		lacking(t, "python3-redis")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	sameLines(t, run(t, python, "testdata/client.py", port(t, address)), `
ping True
echo hello
name python
take [1, 1, 0]
reset OK
pipeline 60
transaction [1, 1, 0]
throttle [0, 16, 15, -1]
bucket 5
config {'save': ''}
command True True
clients 1 python 1
client python 0 -1 2
error unknown command "GET", with args beginning with: "key"`)
}

func TestNodeRedis(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		lacking(t, "node")
	}
	if _, err := os.Stat("testdata/node/node_modules/redis"); err != nil {
		lacking(t, "the redis package for Node (npm ci --prefix server/resp/testdata/node)")
	}
	_, address := start(t, resp.Options{Service: &operation.Service{}})
	var want strings.Builder
	for _, protocol := range []string{"2", "3"} {
		want.WriteString(strings.ReplaceAll(`
# ping "PONG"
# echo "hello"
# name "node#"
# allowed [1,1,0]
# limit 2
# throttle [0,16,15,-1]
# bucket 5
# reset "OK"
# config {"save":""}
# commands true
# info true
# error "ERR unknown command \"GET\", with args beginning with: \"key\""`, "#", protocol))
	}
	sameLines(t, run(t, "node", "testdata/node/client.mjs", port(t, address)), want.String())
}
