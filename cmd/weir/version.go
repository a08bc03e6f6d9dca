package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// versionCommand prints what is running.
type versionCommand struct{}

// Run prints the version of weir, and of Go, system and processor that it was built for.
func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintf(p.stdout, "weir %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// version is the module's version, as the go command that built it knew it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
