package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

const (
	unixScheme = "unix:"
	// defaultMode lets only the user of the server connect to a socket.
	defaultMode = 0o600
	// maxSocketPath is the length of the longest path of a socket on every system, in bytes.
	maxSocketPath = 103

	unixAccepted = "unix:/path, absolute and of up to 103 bytes, and perhaps ?mode=0660"
)

func isUnix(address string) bool { return strings.HasPrefix(address, unixScheme) }

// unixAddress brings the address of a socket to the form unix:/path?mode=0600.
func unixAddress(field, text string) (string, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(text, unixScheme), "?")
	if !filepath.IsAbs(path) || len(path) > maxSocketPath {
		return "", &ConfigError{field, strconv.Quote(text), "no absolute path of a socket, or too long", unixAccepted}
	}
	mode := uint64(defaultMode)
	if query != "" {
		digits, ok := strings.CutPrefix(query, "mode=")
		var err error
		if mode, err = strconv.ParseUint(digits, 8, 9); !ok || err != nil || mode&defaultMode != defaultMode {
			return "", &ConfigError{field, strconv.Quote(text), "no mode of a socket", "mode=0600 to mode=0777, of which the user has 6"}
		}
	}
	return fmt.Sprintf("%s%s?mode=%04o", unixScheme, filepath.Clean(path), mode), nil
}

// place returns an address without the mode of a socket.
func place(address string) string {
	where, _, _ := strings.Cut(address, "?")
	return where
}

// A socket is a listener on a Unix socket.
type socket struct {
	*net.UnixListener
	path    string
	created fs.FileInfo
	closing sync.Once
}

// listenUnix listens at an address of unixAddress. It replaces the socket of a process that has
// ended.
func listenUnix(ctx context.Context, address string) (net.Listener, error) {
	path, query, _ := strings.Cut(strings.TrimPrefix(address, unixScheme), "?mode=")
	mode, err := strconv.ParseUint(query, 8, 9)
	if err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	// A mode before the socket has its name: from the first moment nobody else can connect.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { modeOfSocket(fd, uint32(mode)) })
	}}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	s := &socket{UnixListener: l.(*net.UnixListener), path: path} //nolint:forcetypeassert // of the network unix
	s.SetUnlinkOnClose(false)
	if err = os.Chmod(path, fs.FileMode(mode)); err == nil { // whatever the umask is
		s.created, err = os.Lstat(path)
	}
	if err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return s, nil
}

// removeStale removes a socket at which nobody listens.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return errNoSocket
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = c.Close()
		return syscall.EADDRINUSE
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}

var errNoSocket = errors.New("a file that is not a socket is there")

// Accept returns the next connection. Its remote address is the path of the socket, as clients have
// no address.
func (s *socket) Accept() (net.Conn, error) {
	c, err := s.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return socketConn{c}, nil
}

// Close stops listening, and removes the socket, unless another program has replaced it.
func (s *socket) Close() error {
	err := net.ErrClosed
	s.closing.Do(func() {
		if now, e := os.Lstat(s.path); e == nil && (s.created == nil || os.SameFile(now, s.created)) {
			_ = os.Remove(s.path)
		}
		err = s.UnixListener.Close()
	})
	return err
}

// A socketConn is a connection to a Unix socket.
type socketConn struct{ *net.UnixConn }

// RemoteAddr returns the address of the socket.
func (c socketConn) RemoteAddr() net.Addr { return c.LocalAddr() }
