package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestLogInJSONHasNothingElse(t *testing.T) {
	if greeting := serve(t, "--resp", "0", "--http", "off", "--log-format", "json"); greeting != "" {
		t.Errorf("a greeting stands beside the log: %s", greeting)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	_, log, code := runProgram("serve", "--http", "off", "--resp", busy.Addr().String(), "--log-format", "json")
	var record struct{ Level, Error string }
	if err := json.Unmarshal([]byte(log), &record); err != nil || code != exitError || record.Level != "ERROR" || !strings.HasPrefix(record.Error, "--resp ") {
		t.Errorf("exit code %d, %v, %s", code, err, log)
	}
}

func TestLogLevel(t *testing.T) {
	for level, want := range map[string]string{"debug": "DIWE", "info": "IWE", "warn": "WE", "error": "E"} {
		var b strings.Builder
		log := (&logFlags{Format: "text", Level: level}).logger(&b)
		log.Debug("D")
		log.Info("I")
		log.Warn("W")
		log.Error("E")
		var got string
		for line := range strings.Lines(b.String()) {
			got += strings.TrimSpace(line[strings.Index(line, "msg=")+len("msg="):])
		}
		if got != want {
			t.Errorf("%s logs %q, want %q", level, got, want)
		}
	}
	for _, flag := range []string{"--log-level=loud", "--log-format=xml"} {
		if _, log, code := runProgram("serve", flag); code != exitUsage || !strings.Contains(log, strings.Split(flag, "=")[0]) {
			t.Errorf("%s: exit code %d, %s", flag, code, log)
		}
	}
}

// startLogged starts weir serve as a process. next returns the next line of its log that has a
// text.
func startLogged(t *testing.T, args ...string) (cmd *exec.Cmd, next func(text string) string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], append([]string{"serve", "--resp", "0", "--http", "0", "--log-format", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "WEIR_TEST_AS_PROGRAM=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	return cmd, func(text string) string {
		t.Helper()
		var seen strings.Builder
		for lines.Scan() {
			seen.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), text) {
				return lines.Text()
			}
		}
		t.Fatalf("the log ends without %q:\n%s", text, seen.String())
		return ""
	}
}

func hangUp(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func TestHangupWithoutPoliciesIsLogged(t *testing.T) {
	cmd, next := startLogged(t)
	next("weir serves")
	for range 2 {
		hangUp(t, cmd)
		next("SIGHUP: nothing to read again")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v, want exit code 0", err)
	}
}

func TestHangupOfAFileThatIsStillBrokenIsLoggedAgain(t *testing.T) {
	path := file(t, "weir.yaml", "policies: []")
	cmd, next := startLogged(t, "--config", path)
	next("weir serves")
	if err := os.WriteFile(path, []byte("policies: [{}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	next("was refused") // the file is followed
	for range 2 {
		hangUp(t, cmd)
		next("was refused again")
	}
}
