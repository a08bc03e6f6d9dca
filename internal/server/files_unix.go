//go:build unix

package server

import (
	"math"
	"syscall"
)

// openFiles returns how many files the process may have open at once, and 0 if there is no limit or
// none is known.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return 0
	}
	return int(limit.Cur)
}

// modeOfSocket sets the mode of a socket that has no path yet, where the system has such modes.
func modeOfSocket(fd uintptr, mode uint32) { _ = syscall.Fchmod(int(fd), mode) }
