//go:build unix

package access

import (
	"os"
	"syscall"
)

// keepOwner gives a new file the mode, owner and group of the old one, so that the daemon can still
// read it.
func keepOwner(path string, file *os.File) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := file.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return file.Chmod(info.Mode().Perm())
}
