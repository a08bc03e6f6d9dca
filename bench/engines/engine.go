package engines

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlimit/weir/bench/harness"
)

// The engines that weir's stores stand on.
const (
	redisEngine     = "redis"
	postgresEngine  = "postgres"
	memcachedEngine = "memcached"
)

var engineNames = []string{redisEngine, postgresEngine, memcachedEngine}

// serverCore is the processor of the engines; the load has all others, which loadCores names.
const serverCore = "0"

func loadCores() string {
	switch n := runtime.NumCPU(); n {
	case 1:
		return "0"
	case 2:
		return "1"
	default:
		return fmt.Sprintf("1-%d", n-1)
	}
}

// An engine is a server on a free port of 127.0.0.1, with its data in a folder of its own.
type engine struct {
	name    string
	address string
	dir     string
	process *harness.Process
}

// start starts the engine of the name, with its data in a folder of its own, and waits until it listens and answers.
func start(ctx context.Context, name string) (*engine, error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, err
	}
	e := &engine{name: name, dir: dir}
	if err := e.begin(ctx); err != nil {
		e.stop()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e, nil
}

func (e *engine) begin(ctx context.Context) error {
	port, err := harness.FreePort()
	if err != nil {
		return err
	}
	e.address = net.JoinHostPort("127.0.0.1", port)
	words, owner, err := e.command(ctx, port)
	if err != nil {
		return err
	}
	e.process, err = harness.StartServer(ctx, serverCore, e.dir, owner, words, e.greet)
	return err
}

// command returns the words that start the engine, and as whom.
func (e *engine) command(ctx context.Context, port string) ([]string, *syscall.SysProcAttr, error) {
	switch e.name {
	case redisEngine:
		return []string{"redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", e.dir, "--daemonize", "no"}, nil, nil
	case memcachedEngine:
		words := []string{"memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-m", "1024", "-t", "4"}
		if os.Geteuid() == 0 {
			words = append(words, "-u", "nobody")
		}
		return words, nil, nil
	case postgresEngine:
		return e.cluster(ctx, port)
	}
	return nil, nil, fmt.Errorf("engine is %q; accepted: %q", e.name, engineNames)
}

// cluster makes a database cluster, with PostgreSQL's default settings. PostgreSQL refuses to be run by root, and is
// then run by the user postgres.
func (e *engine) cluster(ctx context.Context, port string) ([]string, *syscall.SysProcAttr, error) {
	var owner *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers, on every Unix
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(e.dir, uid, gid); err != nil {
			return nil, nil, err
		}
		owner = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	data := filepath.Join(e.dir, "data")
	initdb := exec.CommandContext(ctx, "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8")
	initdb.Dir, initdb.SysProcAttr = e.dir, owner
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return []string{"postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + e.dir}, owner, nil
}

// greet connects once. PostgreSQL listens before it serves, and then refuses to.
func (e *engine) greet(ctx context.Context) error {
	if e.name == postgresEngine {
		c, err := pgx.Connect(ctx, "postgres://postgres@"+e.address+"/postgres?sslmode=disable")
		if err != nil {
			return err
		}
		return c.Close(ctx)
	}
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", e.address)
	if err != nil {
		return err
	}
	return c.Close()
}

// stop ends the engine, and removes its data.
func (e *engine) stop() {
	if e.process != nil {
		e.process.Stop()
	}
	_ = os.RemoveAll(e.dir)
}
