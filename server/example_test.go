package server_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/weirlimit/weir/server"
)

// A server on free ports, as a test would run it.
func Example() {
	s, err := server.New(server.Config{RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
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
	fmt.Println(s.RESPAddr().Network(), s.Store())

	stop()
	fmt.Println(<-done, s.Close())
	// Output:
	// ok
	// tcp memory
	// <nil> <nil>
}

func ExampleConfigError() {
	err := server.Config{RESP: "nowhere"}.Validate()
	fmt.Println(err.Error())
	// Output: resp "nowhere": the port is no number from 0 to 65535; accepted: host:port, a port of 127.0.0.1 such as 6380, or off
}

func ExampleStoreAccepted() {
	fmt.Println(strings.HasPrefix(server.StoreAccepted(), "memory, or a URL: "))
	// Output: true
}
