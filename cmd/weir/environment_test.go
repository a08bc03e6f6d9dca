package main

import (
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// variablesOfFlags returns the variable of each flag, by the command's path and the flag's name.
func variablesOfFlags(t *testing.T) map[string]string {
	t.Helper()
	p := program{stdout: io.Discard, stderr: io.Discard}
	k, err := p.parser(t.Context(), &commandLine{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Name != "help" && f.Name != "version" {
				found[strings.TrimPrefix(n.FullPath(), "weir ")+" --"+f.Name] = p.environment.variables[f.Value]
			}
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(k.Model.Node)
	return found
}

// Every flag has a variable, and only flags of one meaning share one.
func TestEveryFlagHasAVariable(t *testing.T) {
	shared := map[string]bool{"WEIR_STORE": true, "WEIR_CONFIG": true, "WEIR_CLIENTS": true, "WEIR_USERS": true}
	flags := variablesOfFlags(t)
	owner := map[string]string{}
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		variable := flags[flag]
		switch {
		case strings.HasSuffix(flag, "serve --clients"): // counts with --config only
		case !strings.HasPrefix(variable, "WEIR_"):
			t.Errorf("%s has the variable %q", flag, variable)
		case owner[variable] != "" && !shared[variable]:
			t.Errorf("%s and %s share %s", flag, owner[variable], variable)
		}
		owner[variable] = flag
	}
	for _, variable := range []string{"WEIR_RESP", "WEIR_HTTP", "WEIR_MAX_KEYS", "WEIR_STORE", "WEIR_CONFIG", "WEIR_CLIENTS_SNAPSHOT", "WEIR_LOG_LEVEL", "WEIR_REPLAY_KEY", "WEIR_CLIENTS_SET_PLAN"} {
		if owner[variable] == "" {
			t.Errorf("no flag has %s", variable)
		}
	}
	for flag, variable := range flags {
		if strings.HasSuffix(flag, " --config") && variable != "WEIR_CONFIG" {
			t.Errorf("%s has %s; want WEIR_CONFIG", flag, variable)
		}
	}
	help, _, _ := runProgram("help", "serve")
	if help = strings.Join(strings.Fields(help), " "); !strings.Contains(help, "Default: 10s ($WEIR_GRACE).") {
		t.Errorf("the help does not show the variable of --grace:\n%s", help)
	}
}

func TestVariablesSetFlags(t *testing.T) {
	t.Setenv("WEIR_RESP", "off")
	t.Setenv("WEIR_HTTP", "127.0.0.1:0")
	t.Setenv("WEIR_PROXY_PROTOCOL_FROM", "10.0.0.0/8,127.0.0.1")
	t.Setenv("WEIR_CONFIG", exampleConfig)
	t.Setenv("WEIR_MAX_KEYS", "") // sets nothing
	greeting := serve(t, "--proxy-protocol-from", "192.0.2.0/24")
	for _, want := range []string{"HTTP on 127.0.0.1:", "policies from " + exampleConfig, "Connections from 192.0.2.0/24 must begin"} {
		if !strings.Contains(greeting, want) {
			t.Errorf("the greeting has no %q:\n%s", want, greeting)
		}
	}
	if strings.Contains(greeting, "Redis protocol") {
		t.Errorf("WEIR_RESP=off:\n%s", greeting)
	}
	if out, log, code := runProgram("policy", "explain", "/login"); code != exitOK || !strings.Contains(out, "login") {
		t.Errorf("policy explain with WEIR_CONFIG: exit code %d, %s%s", code, log, out)
	}
}

// WEIR_CONFIG names a file that must exist; the flags of such files take their variables as others
// do.
func TestVariableOfAFile(t *testing.T) {
	t.Setenv("WEIR_CLIENTS", "sqlite:"+filepath.Join(t.TempDir(), "clients.db"))
	if out, log, code := runProgram("db", "migrate"); code != exitOK {
		t.Fatal(out, log, code)
	}
	t.Setenv("WEIR_CONFIG", exampleConfig)
	const want = `plan "nope" is of no policy`
	if out, log, code := runProgram("clients", "set", "client_ip=192.0.2.7", "--plan", "nope"); code != exitError || !strings.Contains(log, want) {
		t.Errorf("clients set: exit code %d, %s%s", code, log, out)
	}
	if out, log, code := runProgram("clients", "set", "client_ip=192.0.2.7", "--plan", "gold"); code != exitOK {
		t.Errorf("clients set: exit code %d, %s%s", code, log, out)
	}
	t.Setenv("WEIR_CONFIG", "nope.yaml")
	if out, log, code := runProgram("clients", "check"); code != exitUsage || !strings.Contains(log, "WEIR_CONFIG") {
		t.Errorf("clients check: exit code %d, %s%s", code, log, out)
	}
}

func TestErrorsNameTheVariable(t *testing.T) {
	for _, c := range []struct{ variable, value, command, want string }{
		{"WEIR_GRACE", "10", "serve", "weir: --grace: WEIR_GRACE: expected duration"},
		{"WEIR_GRACE", "1h", "serve", "weir: WEIR_GRACE sets --grace 1h0m0s: out of range; accepted: "},
		{"WEIR_HTTP", "99999", "serve", "weir: WEIR_HTTP sets --http \"99999\": "},
		{"WEIR_LOG_LEVEL", "loud", "serve", "weir: --log-level: WEIR_LOG_LEVEL is \"loud\"; accepted: debug, info, warn, error"},
		{"WEIR_TRUST_CLIENT_TIME", "maybe", "serve", "weir: --trust-client-time: WEIR_TRUST_CLIENT_TIME: "},
		{"WEIR_REPLAY_LIMIT", "5/mins", "replay", "weir: --limit: WEIR_REPLAY_LIMIT: "},
	} {
		t.Run(c.variable+"="+c.value, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			out, log, code := runProgram(c.command)
			if code != exitUsage || out != "" || !strings.HasPrefix(log, c.want) {
				t.Errorf("exit code %d, %q, %q; want %q", code, out, log, c.want)
			}
			if _, log, code := runProgram(c.command, "--help"); code != exitOK {
				t.Errorf("--help: exit code %d, %s", code, log)
			}
		})
	}
}

// The value of a variable is not in the help, and an argument has no variable to blame.
func TestVariablesAreNotShown(t *testing.T) {
	t.Setenv("WEIR_STORE", "redis://:geheim@127.0.0.1:1")
	for _, args := range [][]string{{"--help"}, {"help", "serve"}, {"help", "policy", "explain"}} {
		if out, log, code := runProgram(args...); code != exitOK || strings.Contains(out+log, "geheim") {
			t.Errorf("%q: exit code %d, %s%s", args, code, log, out)
		}
	}
	if _, log, code := runProgram("serve", "--resp", "0", "--http", "off", "--wait-for-store", "1ms"); code != exitError || strings.Contains(log, "geheim") || !strings.Contains(log, "WEIR_STORE sets --store") {
		t.Errorf("exit code %d, %s", code, log)
	}
	if _, log, _ := runProgram("serve", "--store", "nothing"); strings.Contains(log, "WEIR_STORE") {
		t.Errorf("an argument has the variable to blame: %s", log)
	}
}
