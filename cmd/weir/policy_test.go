package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weirlimit/weir/internal/testengine"
)

// exampleConfig is the file that the README shows.
const exampleConfig = "../../examples/weir.yaml"

// file writes a file that is gone when the test is over, and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPolicyCheck(t *testing.T) {
	out, log, code := runProgram("policy", "check", exampleConfig)
	if code != exitOK || out != exampleConfig+": 6 policies, nothing wrong\n" || log != "" {
		t.Errorf("the example: exit code %d, %q, %q", code, out, log)
	}
	bad := file(t, "bad.yaml", "policies:\n  - name: a\n    key: all\n    limit: [5/1m]\n  - name: b\n    key: all\n    limits: [5/1m, often]\n")
	out, log, code = runProgram("policy", "check", bad, exampleConfig, "no.yaml")
	lines := strings.Split(strings.TrimSpace(log), "\n")
	if code != exitError || !strings.HasPrefix(out, exampleConfig) || len(lines) < 3 {
		t.Fatalf("three files: exit code %d, %q, %q", code, out, log)
	}
	for i, want := range []string{bad + ":4:5: ", bad + ":7:20: ", "no.yaml"} {
		if i == 2 {
			i = len(lines) - 1
		}
		if !strings.Contains(lines[i], want) || i < 2 && !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
	single := file(t, "one.yaml", "policies: [{name: a, key: all, limits: [5/1m]}]")
	if out, _, code := runProgram("policy", "check", single); code != exitOK || out != single+": 1 policy, nothing wrong\n" {
		t.Errorf("one policy: exit code %d, %q", code, out)
	}
	daily := file(t, "daily.yaml", "policies: [{name: a, key: all, limits: [500/day]}]")
	if out, log, code := runProgram("policy", "check", "--strict", daily); code != exitOK || out != daily+": 1 policy, nothing wrong\n" || !strings.Contains(log, ": note: policies[0].limits[0] may be misread: 500/day begins anew") {
		t.Errorf("a limit per day: exit code %d, %q, %q", code, out, log)
	}
	directory := t.TempDir() // the program's name stands before an error once
	for _, args := range [][]string{{"policy", "check", directory}, {"policy", "explain", "--config", directory, "/"}} {
		_, log, code := runProgram(args...)
		if code != exitError || !strings.HasPrefix(log, "weir: policies: read "+directory+": is a directory") {
			t.Errorf("%s: exit code %d, %s", args, code, log)
		}
	}
	for args, want := range map[string]string{"": "given no file", "--schema " + bad: "given files and --schema"} {
		if _, log, code := runProgram(append([]string{"policy", "check"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(log, want) {
			t.Errorf("policy check %s: exit code %d, %s", args, code, log)
		}
	}
}

func TestPolicyCheckLooksAtClients(t *testing.T) {
	database := "sqlite:" + filepath.Join(t.TempDir(), "clients.db")
	_, log, code := runProgram("policy", "check", exampleConfig, "--clients", database)
	if code != exitError || !strings.Contains(log, "there is no such file") {
		t.Errorf("a database that is not there: exit code %d, %s", code, log)
	}
	checkStep(t, step{"db migrate --database " + database, exitOK, nil})
	for _, c := range []struct {
		plan string
		code int
		want string
	}{{"gold", exitOK, ""}, {"golden", exitError, `"golden"`}} {
		if _, log, code := runProgram("clients", "set", "hash:header:X-API-Key=acme", "--plan", c.plan, "--database", database); code != exitOK {
			t.Fatal(log)
		}
		if _, log, code := runProgram("policy", "check", exampleConfig, "--clients", database); code != c.code || !strings.Contains(log, c.want) {
			t.Errorf("plan %s: exit code %d, %s", c.plan, code, log)
		}
	}
}

func TestPolicySchema(t *testing.T) {
	out, _, code := runProgram("policy", "check", "--schema")
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v", code, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("weir.json", doc); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("weir.json"); err != nil {
		t.Error(err)
	}
}

// Warnings leave the exit code 0, unless --strict is given.
func TestPolicyCheckWarns(t *testing.T) {
	path := file(t, "weir.yaml", "policies: [{name: a, key: 'header:X-User', limits: [1/1s]}]")
	for _, c := range []struct {
		code int
		args []string
	}{{exitOK, []string{path}}, {exitError, []string{"--strict", path}}} {
		out, log, code := runProgram(append([]string{"policy", "check"}, c.args...)...)
		if code != c.code || out != path+": 1 policy, 1 warning\n" || !strings.HasPrefix(log, path+":1:27: warning: policies[0].key has header:X-User, which the client chooses") {
			t.Errorf("%q: exit code %d, %s%s", c.args, code, out, log)
		}
	}
	if _, log, code := runProgram("policy", "check", "--strict", exampleConfig); code != exitOK {
		t.Errorf("the example: exit code %d, %s", code, log)
	}
}

func TestPolicyExplain(t *testing.T) {
	database := "sqlite:" + filepath.Join(t.TempDir(), "clients.db")
	checkStep(t, step{"db migrate --database " + database, exitOK, nil})
	if _, log, code := runProgram("clients", "set", "hash:header:x-api-key=k1", "--plan", "gold", "--database", database); code != exitOK {
		t.Fatal(log)
	}
	base := []string{"policy", "explain", "--config", exampleConfig, "--clients", database}
	for name, c := range map[string]struct {
		args []string
		want []string // parts, in their order
	}{
		"Login": {
			[]string{"-X", "POST", "/login?next=%2F", "--attr", "user=bob", "--ip", "192.0.2.7"},
			[]string{"allowed\n", "login matches\n", "192.0.2.7\n", "5/1m: 5 of 5 remain", "20/1h: 20 of 20 remain", "login-user matches\n", "#81b637d8\n", "api does not match: path is /login, and would have to be /api/**"},
		},
		"TooMuch": {
			[]string{"-X", "post", "/login", "--ip", "192.0.2.7", "--cost", "6"},
			[]string{"denied by login; next allowed never\n", "5/1m: 5 of 5 remain, would deny; next allowed never"},
		},
		"Plan":     {[]string{"https://api.example.com/api/x", "--header", "X-API-Key: k1"}, []string{"login does not match", "api matches\n", "hash:header:X-Api-Key=#", "gold: the client has the plan", "1000/1m: 1000 of 1000"}},
		"NotFor":   {[]string{"/api/x", "--ip", "10.0.0.5"}, []string{"allowed\n", "api does not match: ", "client_ip 10.0.0.0/8", "api-address matches\n"}},
		"NoMethod": {[]string{"/login"}, []string{"allowed\n", "login does not match: method is GET, and would have to be POST"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, log, code := runProgram(append(base, c.args...)...)
			rest := out
			for _, want := range c.want {
				i := strings.Index(rest, want)
				if i < 0 {
					t.Fatalf("exit code %d, %s\n%s\nhas no %q where it should be", code, log, out, want)
				}
				rest = rest[i+len(want):]
			}
		})
	}
	out, _, _ := runProgram(append(base, "/api/x", "--header", "X-API-Key: k1", "--attr", "tenant=a=b", "--json")...)
	var e struct {
		Allowed  bool
		Policies []struct {
			Name, Plan string
			Matched    bool
		}
	}
	if err := json.Unmarshal([]byte(out), &e); err != nil || !e.Allowed || len(e.Policies) != 6 || e.Policies[2].Plan != "gold" || e.Policies[0].Matched {
		t.Errorf("as JSON: %v, %s", err, out)
	}
}

func TestExplainRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"login"}, `path is "login"; accepted: a path`},
		{[]string{"/%zz"}, `path is "/%zz"`},
		{[]string{"http://h/", "--host", "i"}, `--host is "i", and the path has the host "h"`},
		{[]string{"/", "--ip", "nobody"}, "--ip is nobody; accepted: an IPv4 or IPv6 address"},
		{[]string{"/", "--header", "Accept"}, `--header is "Accept"; accepted: a name, a colon`},
		{[]string{"/", "--header", "X Key: bob"}, `--header is "X Key"; accepted: a header's name`},
		{[]string{"/", "--attr", "a"}, `--attr is "a"; accepted: a name, =`},
		{[]string{"/", "--attr", "a=1", "--attr", "a=2"}, `--attr is "a" given twice`},
		{[]string{"/", "--cost=-1"}, "--cost is -1; accepted: a whole number from 0"},
		{[]string{"/", "--config", "no.yaml"}, "no.yaml"},
		{[]string{"/", "--store", "redis://u:secret@127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"/", "--store", "mysql://u:secret@h"}, "mysql://h"},
		{[]string{"/", "--clients", "sqlite:/no/such/file"}, "/no/such/file"},
		{[]string{"-X", "POST", "/api/completions", "--attr", "tokens=many"}, "attribute tokens"},
	} {
		_, log, code := runProgram(append([]string{"policy", "explain", "--config", exampleConfig}, c.args...)...)
		if code != exitError || !strings.Contains(log, c.want) || strings.Contains(log, "secret") {
			t.Errorf("%q: exit code %d, %s; want %s", c.args, code, log, c.want)
		}
	}
}

// What explain shows of an engine is what a server has left there, and it leaves that as it is.
func TestExplainShowsWhatIsInTheEngine(t *testing.T) {
	url := withTimeout("redis", testengine.Redis(t).URL())
	d := startDaemon(t, url, "--config", exampleConfig)
	const login = `{"method":"POST","path":"/login","client_ip":"192.0.2.7","attributes":{"user":"bob"}}`
	for range 2 {
		if status, body := d.post(t, "/v1/check", login); status != 200 || !strings.HasPrefix(body, `{"allowed":true`) {
			t.Fatalf("%d %s", status, body)
		}
	}
	for range 2 {
		out, log, code := runProgram("policy", "explain", "--config", exampleConfig, "--store", url, "-X", "POST", "/login", "--attr", "user=bob", "--ip", "192.0.2.7")
		if code != exitOK || !strings.Contains(out, "20/1h: 18 of 20 remain") {
			t.Errorf("exit code %d, %s %s", code, log, out)
		}
	}
}
