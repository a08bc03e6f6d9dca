package resp

import (
	"bytes"
	"fmt"
	"net"
	"testing"
)

// BenchmarkRun is what a command costs without the operating system.
func BenchmarkRun(b *testing.B) {
	for name, command := range hotCommands {
		for _, pipelined := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, pipelined), func(b *testing.B) {
				client := &script{}
				c, input := newConn(newTestServer(), client, 1), pipeline(pipelined, command)
				c.in = append(c.in, input...)
				b.ReportAllocs()
				for i := 0; i < b.N; i += pipelined {
					c.start, c.end = 0, len(input)
					c.run()
					c.publish()
					client.replies.Reset()
					c.flush()
				}
			})
		}
	}
}

// BenchmarkLoopback sends pipelines over a real connection, and reads the replies.
func BenchmarkLoopback(b *testing.B) {
	for _, pipelined := range []int{1, 64} {
		b.Run(fmt.Sprintf("TAKE/%d", pipelined), func(b *testing.B) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			s := newTestServer()
			go func() { _ = s.Serve(l) }()
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			input, replies := pipeline(pipelined, hotCommands["TAKE"]), make([]byte, 64<<10)
			b.ReportAllocs()
			for i := 0; i < b.N; i += pipelined {
				if _, err := client.Write(input); err != nil {
					b.Fatal(err)
				}
				for lines := 0; lines < 7*pipelined; {
					n, err := client.Read(replies)
					if err != nil {
						b.Fatal(err)
					}
					lines += bytes.Count(replies[:n], []byte{'\n'})
				}
			}
			b.StopTimer()
			_ = client.Close()
			_ = s.Shutdown(b.Context())
		})
	}
}
