package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Process is a server that this program started, and will end.
type Process struct {
	*exec.Cmd
	name    string
	exited  chan error
	problem bytes.Buffer
}

// StartServer starts a server on one processor, and waits until greet succeeds. Stop must be called
// also after an error, if the Process is not nil.
func StartServer(ctx context.Context, core, dir string, owner *syscall.SysProcAttr, words []string, greet func(context.Context) error) (*Process, error) {
	p := &Process{Cmd: exec.Command("taskset", append([]string{"-c", core}, words...)...), name: words[0], exited: make(chan error, 1)}
	p.Dir, p.SysProcAttr, p.Stdout, p.Stderr = dir, owner, &p.problem, &p.problem
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() { p.exited <- p.Wait() }()
	return p, p.ready(ctx, greet)
}

func (p *Process) ready(ctx context.Context, greet func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		err := greet(ctx)
		if err == nil {
			return nil
		}
		select {
		case exit := <-p.exited:
			p.exited <- exit
			return fmt.Errorf("%s ended before it served: %w: %s", p.name, errors.Join(exit, err), p.problem.Bytes())
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w: %s", p.name, err, p.problem.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop sends SIGINT, which ends PostgreSQL even with connections, and kills the process after five
// seconds.
func (p *Process) Stop() {
	_ = p.Process.Signal(os.Interrupt) // it may have ended
	select {
	case err := <-p.exited:
		p.exited <- err
	case <-time.After(5 * time.Second):
		_ = p.Process.Kill()
		p.exited <- <-p.exited
	}
}

// FreePort returns a port of 127.0.0.1 that is free now.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
