package servers

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weirlimit/weir/bench/harness"
)

// gcra is what people write who put a rate limit into Redis.
//
//go:embed gcra.lua
var gcra string

// key is 20 bytes long once redis-benchmark has put 12 digits in the place of __rand_int__.
const key = "limited:__rand_int__"

// A target is a command on a server of its own.
type target struct {
	name    string
	server  []string
	command []string
	// script: load gcra first; the command's second word becomes its hash.
	script  bool
	run     *harness.Process // nil until begin
	address string           // of the server, from then on
}

// Every target that limits has the same limit: 1000 units, one back an hour, so that all is admitted and no state is
// as good as new before the end.
func targets(dir string) []*target {
	weir := []string{filepath.Join(dir, "weir"), "serve", "--resp", "127.0.0.1:%PORT%", "--http", "off", "--admin", "off", "--max-period", "1000h"}
	redis := []string{"redis-server", "--port", "%PORT%", "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir, "--daemonize", "no"}
	echo := []string{filepath.Join(dir, "echo"), "-listen", "127.0.0.1:%PORT%"}
	return []*target{
		{name: "weir WEIR.TAKE", server: weir, command: []string{"WEIR.TAKE", key, "1000/1000h"}},
		{name: "weir CL.THROTTLE", server: weir, command: []string{"CL.THROTTLE", key, "999", "1000", "3600000"}},
		{name: "Redis INCR", server: redis, command: []string{"INCR", key}},
		{name: "Redis EVALSHA, GCRA script", server: redis, script: true, command: []string{"EVALSHA", "", "1", key, "1000", "3600000000", "1"}},
		{name: "bare Go echo", server: echo, command: []string{"ECHO", key, "1000/1000h"}},
	}
}

// build compiles weir and the echo server into dir, as far as the targets need them.
func build(dir string, chosen []*target) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/weirlimit/weir").Output()
	if err != nil {
		return fmt.Errorf("where weir is: %w; run this inside bench/", err)
	}
	commands := map[string][]string{
		"weir": {"-C", strings.TrimSpace(string(root)), "build", "-o", filepath.Join(dir, "weir"), "./cmd/weir"},
		"echo": {"build", "-o", filepath.Join(dir, "echo"), "github.com/weirlimit/weir/bench/servers/echo"},
	}
	for _, t := range chosen {
		name := filepath.Base(t.server[0])
		args, ok := commands[name]
		if !ok {
			continue
		}
		delete(commands, name)
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, out)
		}
	}
	return nil
}

// begin starts the target's server, loads its script and checks that the command is answered as a limiter's is.
func (t *target) begin(ctx context.Context) error {
	port, err := harness.FreePort()
	if err != nil {
		return err
	}
	words := strings.Split(strings.ReplaceAll(strings.Join(t.server, "\x00"), "%PORT%", port), "\x00")
	t.address = net.JoinHostPort("127.0.0.1", port)
	t.run, err = harness.StartServer(ctx, serverCore, "", nil, words, func(context.Context) error {
		_, err := call(t.address, "PING")
		return err
	})
	if err != nil {
		return err
	}
	if t.script {
		sha, err := call(t.address, "SCRIPT", "LOAD", gcra)
		if err != nil {
			return err
		}
		t.command[1] = sha[0]
	}
	values, err := call(t.address, t.command...)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	if want := t.replySize(); len(values) != want {
		return fmt.Errorf("%s: answered %q, want %d values", t.name, values, want)
	}
	return nil
}

// Key returns the name.
func (t *target) Key() string { return t.name }

func (t *target) replySize() int {
	switch t.command[0] {
	case "INCR":
		return 1
	case "CL.THROTTLE":
		return 5
	}
	return 6
}
