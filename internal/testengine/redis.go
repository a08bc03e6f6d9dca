package testengine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis starts a Redis server. It keeps nothing on disk, unless the arguments say so: with "--appendonly", "yes" it has its data
// again after Restart.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, redis("redis-server", args))
}

// Valkey starts a Valkey server, which takes what Redis does. Where there is none the test is skipped, always.
func Valkey(t testing.TB, args ...string) *Server {
	t.Helper()
	e := redis("valkey-server", args)
	e.optional = true
	return start(t, e)
}

func redis(binary string, extra []string) engine {
	return engine{
		scheme: "redis://",
		binary: onPath(binary),
		args: func(s *Server) []string {
			return append([]string{
				"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--appendonly", "no",
				"--repl-diskless-sync-delay", "0",
			}, extra...)
		},
		ready: redisReady,
		stop:  syscall.SIGTERM,
		crash: os.Kill,
	}
}

func onPath(binary string) func() (string, error) {
	return func() (string, error) {
		path, err := exec.LookPath(binary)
		if err != nil {
			return "", missingError{binary}
		}
		return path, nil
	}
}

// redisReady asks for the process id: another test's engine may have taken the port.
func redisReady(s *Server) error {
	info, err := s.ask("INFO", "server")
	if err != nil {
		if strings.HasPrefix(err.Error(), "NOAUTH") {
			return nil // it will tell nobody without the password
		}
		return err
	}
	if id := field(info, "process_id:"); id != strconv.Itoa(s.Pid()) {
		return fmt.Errorf("process %s answers on %s, and should be %d", id, s.Addr(), s.Pid())
	}
	return nil
}

// field returns what follows name at the beginning of a line.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ask sends one command to a Redis server, and returns a reply that is a text or a number; of a list, the texts on
// lines.
func (s *Server) ask(args ...string) (string, error) {
	conn, err := dial(s)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(a), a)
	}
	return readReply(bufio.NewReader(conn))
}

func dial(s *Server) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Minute)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(time.Minute))
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return "", errors.New(text)
	case '$':
		return readText(r, text)
	case '*':
		var all strings.Builder
		n, _ := strconv.Atoi(text)
		for range n {
			item, err := readReply(r)
			if err != nil {
				return "", err
			}
			all.WriteString(item + "\n")
		}
		return all.String(), nil
	}
	return text, nil
}

func readText(r *bufio.Reader, size string) (string, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return "", err
	}
	text := make([]byte, n+2)
	_, err = io.ReadFull(r, text)
	return string(text[:n]), err
}
