package testengine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Postgres starts a PostgreSQL server with an empty database, weir, whose owner postgres needs no password. It keeps
// its data when it is restarted or killed.
func Postgres(t testing.TB, args ...string) *Server {
	t.Helper()
	user, err := unprivileged("postgres")
	e := engine{
		scheme:  "postgres://postgres@",
		path:    "/weir?sslmode=disable",
		binary:  postgresBinary("postgres"),
		prepare: prepareCluster,
		args: func(s *Server) []string {
			all := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
			for _, setting := range []string{
				"listen_addresses=127.0.0.1", "unix_socket_directories=" + s.dir, "max_connections=200",
				"fsync=off", "full_page_writes=off",
			} {
				all = append(all, "-c", setting)
			}
			return append(all, args...)
		},
		ready: postgresReady,
		user:  user,
		stop:  syscall.SIGINT,  // waits for no client
		crash: syscall.SIGQUIT, // ends all its processes, and leaves the recovery to the next start
	}
	if _, missing := e.binary(); err != nil && missing == nil {
		t.Fatal(err)
	}
	return start(t, e)
}

// postgresBinary finds a program of PostgreSQL. Debian keeps them by version, and not on the PATH.
func postgresBinary(name string) func() (string, error) {
	return func() (string, error) {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if err != nil || len(paths) == 0 {
			return "", missingError{"postgresql (" + name + ")"}
		}
		version := func(path string) int {
			v, _ := strconv.Atoi(strings.Split(path, "/")[4])
			return v
		}
		return slices.MaxFunc(paths, func(a, b string) int { return version(a) - version(b) }), nil
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// postgresReady reads what the process says of itself in its directory.
func postgresReady(s *Server) error {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 8 || strings.TrimSpace(lines[7]) != "ready" || lines[0] != strconv.Itoa(s.Pid()) {
		return fmt.Errorf("postmaster.pid says %q", lines)
	}
	return nil
}

// cluster is an archive of a new database cluster, made once by a process: to make one takes longer than all else. It
// has no name in the file system, so that nothing is left of it.
var cluster *os.File

func prepareCluster(s *Server) error {
	serial.Lock()
	defer serial.Unlock()
	if _, err := os.Stat(s.data()); err == nil {
		return nil
	}
	if cluster == nil {
		return s.makeCluster()
	}
	if _, err := cluster.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return s.run(cluster, nil, "tar", "-xf", "-")
}

// makeCluster makes the directory of data, with the database, and the archive of it.
func (s *Server) makeCluster() error {
	initdb, err := postgresBinary("initdb")()
	if err != nil {
		return err
	}
	err = s.run(nil, nil, initdb, "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	err = s.run(strings.NewReader("create database weir;\n"), nil, s.exe, "--single", "-D", s.data(), "-F", "postgres")
	if err != nil {
		return err
	}
	archive, err := os.CreateTemp("", "weir-engine-*.tar")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(archive.Name()), s.run(nil, archive, "tar", "-cf", "-", "data")); err != nil {
		return errors.Join(err, archive.Close())
	}
	cluster = archive
	return nil
}

// run runs a program to its end, in the server's directory and as its user.
func (s *Server) run(in io.Reader, out io.Writer, name string, args ...string) error {
	var said strings.Builder
	cmd := exec.Command(name, args...) // it ends soon
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, in, out, &said
	if out == nil {
		cmd.Stdout = &said
	}
	confine(cmd, s.engine)
	if err := fork(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, said.String())
	}
	return nil
}
