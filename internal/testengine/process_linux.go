package testengine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// confine makes a process end with this one, run as the engine's user, and not be hit by the terminal's interrupts.
func confine(cmd *exec.Cmd, e engine) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s, ok := e.crash.(syscall.Signal); ok {
		cmd.SysProcAttr.Pdeathsig = s
	}
	if e.user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(e.user.uid), Gid: uint32(e.user.gid)}
	}
}

// forks gives work to a thread that never ends.
var forks = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// fork starts a process from a thread that lives as long as this process: Linux tells children of the death of the
// thread that started them.
func fork(cmd *exec.Cmd) error {
	done := make(chan error)
	forks() <- func() { done <- cmd.Start() }
	return <-done
}

// An engineUser is who an engine runs as.
type engineUser struct{ uid, gid int }

// unprivileged returns the user of this name if we are root, as whom some engines don't run, and else nil.
func unprivileged(name string) (*engineUser, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // nobody in particular
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return &engineUser{uid, gid}, errors.Join(err1, err2)
}

// own gives a file or directory to the user.
func (u *engineUser) own(path string) error {
	if u == nil {
		return nil
	}
	return os.Chown(path, u.uid, u.gid)
}

func (s *Server) pause() error {
	_, err := s.signalAll(syscall.SIGSTOP)
	return err
}

func (s *Server) resume() error {
	_, err := s.signalAll(syscall.SIGCONT)
	return err
}

// kill ends the process and its children with SIGKILL. They are stopped before, so that none of them
// reacts to the end of another.
func (s *Server) kill() error {
	children, err := s.signalAll(syscall.SIGSTOP)
	if err != nil {
		return err
	}
	s.cmd.Process.Kill()
	for _, pid := range children {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.ended
	return nil
}

// signalAll signals the process and its children, first the process, so that it makes no more of
// them. It returns the children.
func (s *Server) signalAll(signal syscall.Signal) (children []int, err error) {
	if !s.running() {
		return nil, fmt.Errorf("%s does not run", s.exe)
	}
	if err := s.cmd.Process.Signal(signal); err != nil {
		return nil, err
	}
	pid := strconv.Itoa(s.Pid())
	text, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
	if err != nil {
		return nil, err
	}
	for child := range strings.FieldsSeq(string(text)) {
		if id, err := strconv.Atoi(child); err == nil {
			syscall.Kill(id, signal) // it may have ended since
			children = append(children, id)
		}
	}
	return children, nil
}
