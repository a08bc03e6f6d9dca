package resp_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirlimit/weir/internal/server/limiters"
	"github.com/weirlimit/weir/internal/server/operation"
	"github.com/weirlimit/weir/internal/server/resp"
	"github.com/weirlimit/weir/store/memory"
)

// TestShutdownLosesNoReply has clients that send more than they read at first, so that the server waits for them to take
// replies, and more input than it will carry out is left when it ends.
func TestShutdownLosesNoReply(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := resp.New(resp.Options{Service: &operation.Service{Limiters: limiters.New(memory.New(memory.Options{}))}})
	served, down := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	c := dial(t, l.Addr().String())
	go func() { _, _ = io.WriteString(c, strings.Repeat(array("WEIR.TAKE", "k", "3/1h"), 200_000)) }()
	eventually(t, "commands arrive", func() bool { return server.Stats().Requests > 0 })
	go func() { down <- server.Shutdown(context.Background()) }()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	<-time.After(100 * time.Millisecond) // longer than the server goes on reading by itself
	replies := strings.Count(c.expectClosed(), "*6\r\n")
	_ = c.Close()
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if done := server.Stats().Requests; int64(replies) != done {
		t.Errorf("%d commands were carried out, and %d replies came", done, replies)
	}
}

func TestShutdownCarriesOutWhatWaitsBehindRepliesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, p := serveOnPipes(t, resp.Options{Service: &operation.Service{}})
		c, down := p.dial(), make(chan error, 1)
		go func() {
			for _, command := range []string{"ECHO 1\r\n", "ECHO 2\r\n", "ECHO 3\r\n"} {
				_, _ = io.WriteString(c, command)
			}
		}()
		synctest.Wait() // the first reply is not read, the second command is not taken
		go func() { down <- server.Shutdown(context.Background()) }()
		time.Sleep(5 * time.Second)
		reply := make([]byte, len("$1\r\n1\r\n"))
		for _, want := range []string{"1", "2", "3"} {
			if _, err := io.ReadFull(c, reply); err != nil || string(reply) != "$1\r\n"+want+"\r\n" {
				t.Fatalf("got %q, %v; want the reply to ECHO %s", reply, err, want)
			}
			time.Sleep(time.Second)
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}
