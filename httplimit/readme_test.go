package httplimit_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the README shows of a server is one, and its clients see what the README says that they see.
func TestServerOfTheReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	_, code, _ := strings.Cut(readme, "```go\n")
	code, _, found := strings.Cut(code, "```\n")
	const address = "127.0.0.1:8000"
	if !found || !strings.Contains(code, "httplimit.New") || !strings.Contains(code, address) {
		t.Fatalf("the first Go of the README is not a server at %s:\n%s", address, code)
	}
	free := freeAddress(t)
	url := run(t, free, strings.Replace(code, address, free, 1))
	var seen []string
	for range 101 {
		seen = append(seen, answerOf(t, url))
	}
	for _, answer := range []string{seen[0], seen[100]} {
		for line := range strings.Lines(answer) {
			line = strings.TrimSpace(line)
			if shown, _, _ := strings.Cut(line, `,"detail"`); !strings.Contains(readme, "    "+shown) {
				t.Errorf("the README does not show %s", shown)
			}
		}
	}
}

// run runs a program of these statements, which serves at an address, until the test ends.
func run(t *testing.T, address, statements string) (url string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "main.go")
	binary := filepath.Join(t.TempDir(), "server")
	imports := "import (\n\"log\"\n\"net/http\"\n\n\"github.com/weirlimit/weir\"\n\"github.com/weirlimit/weir/httplimit\"\n)\n"
	text := "package main\n" + imports + "func main() {\nhandler := http.NotFoundHandler()\nhandler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})\n" + statements + "}\n"
	if err := os.WriteFile(program, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, text)
	}
	ctx, stop := context.WithCancel(t.Context())
	server := exec.CommandContext(ctx, binary)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait()
	})
	for ; ; time.Sleep(10 * time.Millisecond) { // a real program, which takes its time to listen
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return "http://" + address
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// answerOf writes an answer as the README does.
func answerOf(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Proto, r.Status)
	for _, name := range []string{"Ratelimit", "Ratelimit-Policy", "Content-Type", "Retry-After"} {
		if value := r.Header.Get(name); value != "" && r.StatusCode != http.StatusOK == (name == "Content-Type" || name == "Retry-After") {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	b.Write(body)
	return b.String()
}
