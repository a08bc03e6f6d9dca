package resp_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"

	"github.com/weirlimit/weir/internal/server/latency"
	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{}))}})
	go func() {
		if err := server.Serve(l); err != nil {
			log.Print(err)
		}
	}()

	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(client, "CL.THROTTLE user:42 15 30 60\r\nQUIT\r\n")
	for replies := bufio.NewScanner(client); replies.Scan(); {
		fmt.Println(replies.Text())
	}

	if err := server.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
	stats := server.Stats()
	fmt.Println(stats.Requests, "commands,", stats.Allowed, "admitted")
	fmt.Println(server.Decisions()[latency.Take].Snapshot().Count, "measured")
	// Output:
	// *5
	// :0
	// :16
	// :15
	// :-1
	// :2
	// +OK
	// 2 commands, 1 admitted
	// 1 measured
}
