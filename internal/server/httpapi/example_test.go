package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/weirlimit/weir/internal/server/httpapi"
	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/store/memory"
)

func Example() {
	server := httpapi.New(httpapi.Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{}))}})

	// As a handler of somebody else's listener:
	recorder := httptest.NewRecorder()
	server.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "http://localhost/healthz", nil))
	fmt.Print(recorder.Body)

	// With a listener of its own:
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- server.Serve(l) }()
	body := strings.NewReader(`{"key":"user:42","limit":"1/1h","cost":2}`)
	response, err := http.Post("http://"+l.Addr().String()+"/v1/take", "application/json", body)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	fmt.Println(strings.TrimSpace(string(text)), err)
	_ = response.Body.Close()
	fmt.Println(server.Shutdown(context.Background()), <-done, server.Stats().Denied, server.Decisions()[latency.Take].Snapshot().Count)
	// Output:
	// ok
	// {"allowed":false,"limit":1,"remaining":1,"retry_after_us":-1,"reset_after_us":0,"delay_us":0} <nil>
	// <nil> <nil> 1 1
}
