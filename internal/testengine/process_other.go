//go:build !linux

package testengine

import (
	"errors"
	"os/exec"
)

// engineUser is who an engine runs as. Elsewhere than on Linux that is the user of the test.
type engineUser struct{}

func unprivileged(string) (*engineUser, error) { return nil, nil } //nolint:nilnil // nobody in particular

func (*engineUser) own(string) error { return nil }

func confine(*exec.Cmd, engine) {}

func fork(cmd *exec.Cmd) error { return cmd.Start() }

func (s *Server) pause() error { return errors.ErrUnsupported }

func (s *Server) resume() error { return errors.ErrUnsupported }

func (s *Server) kill() error { return errors.ErrUnsupported }
