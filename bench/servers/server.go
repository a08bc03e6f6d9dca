package main

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// Servers run on one processor, the load on another.
const serverCore, loadCore = "0", "1"

// A server is a process that this one started and will end.
type server struct {
	cmd     *exec.Cmd
	port    string
	exited  chan error
	problem bytes.Buffer
}

// start runs a command, in whose words %PORT% stands for a free port, and waits until it answers a PING.
func start(words []string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := []string{"-c", serverCore}
	for _, w := range words {
		args = append(args, string(bytes.ReplaceAll([]byte(w), []byte("%PORT%"), []byte(port))))
	}
	s := &server{cmd: exec.Command("taskset", args...), port: port, exited: make(chan error, 1)}
	s.cmd.Stderr = &s.problem
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.exited <- s.cmd.Wait() }()
	return s, s.ready(words[0])
}

func (s *server) ready(name string) error {
	deadline := time.After(10 * time.Second)
	for {
		_, err := call(s.address(), "PING")
		if err == nil {
			return nil
		}
		select {
		case exit := <-s.exited:
			s.exited <- exit
			return fmt.Errorf("%s ended before it answered: %v: %s", name, exit, s.problem.Bytes())
		case <-deadline:
			s.stop()
			return fmt.Errorf("%s did not answer within 10 s: %w: %s", name, err, s.problem.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *server) address() string { return net.JoinHostPort("127.0.0.1", s.port) }

func (s *server) pid() int { return s.cmd.Process.Pid }

// stop asks the server to end, and ends it after five seconds.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-s.exited:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
