//go:build !unix

package server

// openFiles returns how many files the process may have open at once, and 0 if there is no limit or
// none is known.
func openFiles() int { return 0 }

// modeOfSocket does nothing: the system has no such modes.
func modeOfSocket(uintptr, uint32) {}
