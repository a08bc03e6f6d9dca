package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// runProgram runs weir to its end and returns what it printed and its exit code.
func runProgram(args ...string) (stdout, stderr string, code int) {
	var out, log bytes.Buffer
	p := program{stdout: &out, stderr: &log}
	code = p.run(context.Background(), args)
	return out.String(), log.String(), code
}

func TestHelpShowsEveryCommand(t *testing.T) {
	out, _, code := runProgram("--help")
	if code != exitOK {
		t.Errorf("exit code is %d", code)
	}
	for _, command := range []string{"serve", "migration", "policy check", "policy explain", "clients set", "users add", "users check", "db migrate", "replay", "limit explain", "bounds", "version"} {
		if !strings.Contains(out, "\n  "+command) {
			t.Errorf("help has no command %s:\n%s", command, out)
		}
	}
}

func TestHelpOfNoArgumentsAndOfCommands(t *testing.T) {
	want, _, _ := runProgram("--help")
	for _, args := range [][]string{{}, {"help"}} {
		if out, log, code := runProgram(args...); code != exitOK || out != want || log != "" {
			t.Errorf("%q: exit code %d, %s%s", args, code, log, out)
		}
	}
	want, _, _ = runProgram("policy", "check", "--help")
	if out, log, code := runProgram("help", "policy", "check"); code != exitOK || out != want || !strings.Contains(out, "--strict") {
		t.Errorf("help policy check: exit code %d, %s%s", code, log, out)
	}
	if out, log, code := runProgram("help", "serv"); code != exitUsage || out != "" || !strings.Contains(log, "serv") {
		t.Errorf("help serv: exit code %d, %q, %q", code, log, out)
	}
}

func TestVersion(t *testing.T) {
	want := versionLine(nil)
	if info, ok := debug.ReadBuildInfo(); ok {
		want = versionLine(info)
	}
	for _, args := range [][]string{{"version"}, {"--version"}, {"serve", "--version"}} {
		if out, log, code := runProgram(args...); code != exitOK || out != want+"\n" || log != "" || !strings.HasPrefix(out, "weir ") {
			t.Errorf("%q: %q, %q and exit code %d, want %q", args, out, log, code, want)
		}
	}
}

func TestVersionLine(t *testing.T) {
	host := " " + runtime.GOOS + "/" + runtime.GOARCH
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	at := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-22T10:00:00Z"}
	for _, test := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, "weir dev, unknown commit, unknown date, "},
		{info("(devel)"), "weir dev, unknown commit, unknown date, "},
		{info("v1.2.3", revision, at), "weir v1.2.3, commit 0123456789ab, 2026-11-22T10:00:00Z, "},
		{info("v1.2.3", revision, at, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "weir v1.2.3, commit 0123456789ab with changes, 2026-11-22T10:00:00Z, "},
	} {
		if got := versionLine(test.info); got != test.want+runtime.Version()+host {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	buildVersion, buildCommit, buildDate = "v2.0.0", "fedcba98", "2026-11-23"
	defer func() { buildVersion, buildCommit, buildDate = "", "", "" }()
	if got, want := versionLine(info("(devel)", revision, at)), "weir v2.0.0, commit fedcba98, 2026-11-23, "+runtime.Version()+host; got != want || version() != "v2.0.0" {
		t.Errorf("set by the linker: got %q, want %q", got, want)
	}
}

func TestArgumentsRefused(t *testing.T) {
	tests := []struct {
		name, args string
		want       []string // parts of the message
	}{
		{"NoSubcommand", "policy", []string{"check", "explain"}},
		{"UnknownCommand", "server", []string{"server"}},
		{"UnknownFlag", "serve --port 1", []string{"--port"}},
		{"MoreArguments", "serve 6380", []string{"6380"}},
		{"PortIsNoNumber", "serve --resp redis", []string{"--resp", `"redis"`, "accepted: host:port"}},
		{"PortTooLarge", "serve --http 65536", []string{"--http", `"65536"`, "accepted: host:port"}},
		{"AddressEmpty", "serve --http=", []string{"--http", "empty", "accepted: host:port"}},
		{"BothOff", "serve --resp off --http off", []string{"--http", "off", "accepted: off for one"}},
		{"ProxiesEmpty", "serve --proxy-protocol-from=", []string{"--proxy-protocol-from", `""`, "accepted: addresses and CIDRs"}},
		{"ProxiesNoNetwork", "serve --proxy-protocol-from 10.0.0.0/8,proxy", []string{"--proxy-protocol-from", `"proxy"`, "accepted: addresses and CIDRs"}},
		{"MemoryNoSize", "serve --memory lots", []string{`--memory "lots"`, "accepted: a number of bytes"}},
		{"MemoryZero", "serve --memory 0", []string{`--memory "0"`, "from 1MiB"}},
		{"MemoryTooSmall", "serve --memory 64KiB", []string{"--memory 64KiB", "accepted: 1MiB to 4TiB"}},
		{"NoKeys", "serve --max-keys 0", []string{"--max-keys 0", "accepted: 1 to "}},
		{"KeysNegative", "serve --max-keys=-1", []string{"--max-keys -1", "accepted: 1 to "}},
		{"KeysNoNumber", "serve --max-keys many", []string{"--max-keys", "many"}},
		{"NoConnections", "serve --max-connections 0", []string{"--max-connections 0", "accepted: 1 to "}},
		{"ConnectionsTooMany", "serve --max-connections 1000001", []string{"--max-connections 1000001", "accepted: 1 to 1000000"}},
		{"NoConnectionsPerAddress", "serve --max-connections-per-address 0", []string{"--max-connections-per-address 0", "accepted: 1 to "}},
		{"PerAddressMoreThanAll", "serve --max-connections 5 --max-connections-per-address 6",
			[]string{"--max-connections-per-address 6", "accepted: 1 to 5"}},
		{"IdleTimeoutTooShort", "serve --idle-timeout 10ms", []string{"--idle-timeout 10ms", "accepted: 1s to "}},
		{"IdleTimeoutWithoutUnit", "serve --idle-timeout 10", []string{"--idle-timeout", "10"}},
		{"OverflowUnknown", "serve --overflow drop", []string{"--overflow", "drop", "deny", "share"}},
		{"ConfigEmpty", "serve --config=", []string{"--config", "empty", "accepted: a file of policies"}},
		{"ClientsEmpty", "serve --config f --clients=", []string{"--clients", "empty", "accepted: sqlite:"}},
		{"SnapshotEmpty", "serve --config f --clients-snapshot=", []string{"--clients-snapshot", "empty", "accepted: a file"}},
		{"ClientsWithoutPolicies", "serve --clients sqlite:c.db", []string{"--clients", "no policies", "config too"}},
		{"SnapshotWithoutPolicies", "serve --clients-snapshot s", []string{"--clients-snapshot", "no policies", "config too"}},
		{"TokenKeyWithoutPolicies", "serve --token-key k", []string{"--token-key", "no policies", "config too"}},
		{"TokenKeyEmpty", "serve --config f --token-key=k,", []string{"--token-key", "empty", "umask 077"}},
		{"GraceZero", "serve --grace 0", []string{"--grace 0", "accepted: 1ms to"}},
		{"GraceTooLong", "serve --grace 1h", []string{"--grace 1h0m0s", "accepted: 1ms to"}},
		{"GraceWithoutUnit", "serve --grace 10", []string{"--grace", "10"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, log, code := runProgram(strings.Fields(test.args)...)
			if code != exitUsage || out != "" {
				t.Errorf("exit code is %d, want %d; stdout %q, want none", code, exitUsage, out)
			}
			for _, part := range test.want {
				if !strings.Contains(log, part) {
					t.Errorf("message %q does not say %q", log, part)
				}
			}
		})
	}
}

func TestBusyPortNamesTheFlag(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for flag, other := range map[string]string{"--resp": "--http", "--http": "--resp", "--admin": "--resp"} {
		_, log, code := runProgram("serve", "--http", "0", other, "0", flag, busy.Addr().String())
		if code != exitError || !strings.HasPrefix(log, "weir: "+flag+" "+busy.Addr().String()+": another program listens there") {
			t.Errorf("exit code is %d, message %q; want %d and one about %s", code, log, exitError, flag)
		}
	}
}

// docs/cli.md has every command.
func TestDocsHaveEveryCommand(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	p := program{stdout: io.Discard, stderr: io.Discard}
	k, err := p.parser(t.Context(), &commandLine{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range k.Model.Leaves(true) {
		if command.Parent.Name == "clients" && command.Name != "set" {
			if !strings.Contains(string(page), "`"+command.Name+"`") {
				t.Errorf("docs/cli.md does not have weir clients %s", command.Name)
			}
			continue
		}
		if !strings.Contains(string(page), "`"+command.FullPath()+"`") {
			t.Errorf("docs/cli.md does not have %s", command.FullPath())
		}
	}
}
