// Command echo is the least that a server of the Redis protocol in Go can do: it reads commands, a goroutine for each
// connection, and answers each with the same reply, as long as that of WEIR.TAKE. What weir needs beyond it is weir's.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

// reply has the size of a decision's.
const reply = "*6\r\n:1\r\n:1000\r\n:999\r\n:0\r\n:3600000000\r\n:0\r\n"

// bufferSize bounds a command, and is what one read takes of a pipeline.
const bufferSize = 64 << 10

var errProtocol = errors.New("not a command of the Redis protocol")

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	l, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "echo:", err)
			os.Exit(1)
		}
		go func() {
			defer c.Close()
			_ = serve(c) // the client went away, or talks nonsense: either way this connection is over
		}()
	}
}

// serve answers all commands that a read brought with one write.
func serve(c io.ReadWriter) error {
	in, out := make([]byte, bufferSize), make([]byte, 0, bufferSize)
	held := 0
	for {
		n, err := c.Read(in[held:])
		if err != nil {
			return err
		}
		held += n
		done := 0
		out = out[:0]
		for {
			size, err := commandSize(in[done:held])
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			done += size
			out = append(out, reply...)
		}
		if held-done == len(in) {
			return errProtocol
		}
		held = copy(in, in[done:held])
		if len(out) > 0 {
			if _, err := c.Write(out); err != nil {
				return err
			}
		}
	}
}

// commandSize returns the length of the command at the start of b, or 0 when its end is not there yet.
func commandSize(b []byte) (int, error) {
	words, at, err := header(b, 0, '*')
	for i := 0; i < words && at > 0 && err == nil; i++ {
		var length int
		length, at, err = header(b, at, '$')
		if at == 0 || err != nil {
			break
		}
		at += length + 2
		if at > len(b) {
			at = 0
		}
	}
	return at, err
}

// header reads a line of the mark and a number, and returns where the next one starts, or 0 when it isn't there yet.
func header(b []byte, at int, mark byte) (number, next int, err error) {
	if at == len(b) {
		return 0, 0, nil
	}
	end := bytes.IndexByte(b[at:], '\n')
	if end < 0 {
		return 0, 0, nil
	}
	line := b[at : at+end]
	if len(line) < 3 || line[0] != mark {
		return 0, 0, errProtocol
	}
	number, err = strconv.Atoi(string(line[1 : len(line)-1]))
	if err != nil || number < 0 || number > bufferSize {
		return 0, 0, errProtocol
	}
	return number, at + end + 1, nil
}
