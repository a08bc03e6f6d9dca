package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker where the go command does not know them, such as in a build from an archive:
//
//	go build -ldflags "-X main.buildVersion=v1.2.3 -X main.buildCommit=0123abc -X main.buildDate=2026-11-22T10:00:00Z" ./cmd/weir
var buildVersion, buildCommit, buildDate string

// versionCommand prints the version.
type versionCommand struct{}

// Run prints the version of weir, its commit and date, and the version of Go, the system and the
// processor of the build.
func (versionCommand) Run(p *program) error {
	info, _ := debug.ReadBuildInfo()
	_, err := fmt.Fprintln(p.stdout, versionLine(info))
	return err
}

// versionLine returns the output of weir version. info may be nil.
func versionLine(info *debug.BuildInfo) string {
	settings := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
	}
	commit, date := cmp.Or(buildCommit, settings["vcs.revision"]), cmp.Or(buildDate, settings["vcs.time"], "unknown date")
	const short = 12
	commit = commit[:min(len(commit), short)]
	switch {
	case commit == "":
		commit = "unknown commit"
	case buildCommit == "" && settings["vcs.modified"] == "true":
		commit = "commit " + commit + " with changes"
	default:
		commit = "commit " + commit
	}
	return fmt.Sprintf("weir %s, %s, %s, %s %s/%s", versionOf(info), commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version returns the version of the module.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	switch {
	case buildVersion != "":
		return buildVersion
	case info == nil || info.Main.Version == "" || info.Main.Version == "(devel)":
		return "dev"
	}
	return info.Main.Version
}
