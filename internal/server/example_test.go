package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlimit/weir/internal/server"
)

// A server on free ports, as a test would run it.
func Example() {
	s, err := server.New(server.Config{RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0", Admin: "127.0.0.1:0"})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	response, err := http.Get("http://" + s.HTTPAddr().String() + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	fmt.Print(string(text))
	fmt.Println(s.RESPAddr().Network(), s.AdminAddr().Network(), s.Store())

	stop()
	fmt.Println(<-done, s.Close())
	// Output:
	// ok
	// tcp tcp memory
	// <nil> <nil>
}

func ExampleConfigError() {
	err := server.Config{RESP: "nowhere"}.Validate()
	fmt.Println(err.Error())
	// Output: resp "nowhere": the port is no number from 0 to 65535; accepted: host:port, a port of 127.0.0.1 such as 6380, unix:/path of a socket, or off
}

func ExampleStoreAccepted() {
	fmt.Println(strings.HasPrefix(server.StoreAccepted(), "memory, or a URL: "))
	// Output: true
}

// A server with policies, which can be edited while it runs.
func Example_policies() {
	file := filepath.Join(os.TempDir(), fmt.Sprintf("weir-%d.yaml", os.Getpid()))
	write := func(limit string) {
		text := "policies:\n  - {name: login, match: {path: /login}, key: [client_ip], limits: [" + limit + "]}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			log.Fatal(err)
		}
	}
	write("5/1m")
	s, err := server.New(server.Config{RESP: server.Off, HTTP: "127.0.0.1:0", Admin: server.Off, Policies: file})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Open(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Status().Config.Policies, "policy")

	write("often")
	err = s.Reload() // or wait a moment: the file is followed
	fmt.Println(strings.Contains(err.Error(), ".yaml:2:69: "), s.Status().Config.Refused == err.Error())
	write("6/1m")
	fmt.Println(s.Reload(), s.Status().Config.Refused == "")
	fmt.Println(s.Close(), os.Remove(file))
	// Output:
	// 1 policy
	// true true
	// <nil> true
	// <nil> <nil>
}

func ExampleParseSize() {
	bytes, err := server.ParseSize("512MiB")
	fmt.Println(bytes, err)
	// Output: 536870912 <nil>
}
