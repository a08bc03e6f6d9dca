package middleware

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirlimit/weir/bench/harness"
)

// connections is how many clients ask the server at once, each on a connection of its own, from an address of its own.
const connections = 16

// overLoopback serves the handler, and asks it for d from this same process: the processor time is that of both ends.
func overLoopback(h http.Handler, d time.Duration) (harness.Timing, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return harness.Timing{}, err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-served
	}()
	conns := make([]net.Conn, connections)
	for i := range conns {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i))}}
		if conns[i], err = dialer.DialContext(context.Background(), "tcp4", l.Addr().String()); err != nil {
			return harness.Timing{}, err
		}
		defer conns[i].Close()
	}
	if _, err := askAll(conns, d/5); err != nil {
		return harness.Timing{}, err
	}
	t := harness.Measure(func() (t harness.Timing) {
		t, err = askAll(conns, d)
		return t
	})
	return t, err
}

func askAll(conns []net.Conn, d time.Duration) (harness.Timing, error) {
	parts, errs := make([]harness.Timing, len(conns)), make([]error, len(conns))
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for i, c := range conns {
		wg.Go(func() { parts[i], errs[i] = askOne(c, end) })
	}
	wg.Wait()
	return harness.Sum(parts), errors.Join(errs...)
}

var (
	requestText = []byte("GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: bench\r\n\r\n")
	statusLine  = []byte("HTTP/1.1 ")
	headerEnd   = []byte("\r\n\r\n")
)

// askOne makes requests on a connection until the end. Answers have no body.
func askOne(c net.Conn, end time.Time) (harness.Timing, error) {
	var t harness.Timing
	buf := make([]byte, 4096)
	for {
		now := time.Now()
		if t.Requests > 0 && !now.Before(end) {
			return t, nil
		}
		if err := c.SetDeadline(now.Add(time.Minute)); err != nil {
			return t, err
		}
		if _, err := c.Write(requestText); err != nil {
			return t, err
		}
		status, err := answer(c, buf)
		if err != nil {
			return t, err
		}
		count(&t, status)
	}
}

// answer reads an answer and returns its status.
func answer(c net.Conn, buf []byte) (int, error) {
	n := 0
	for !bytes.HasSuffix(buf[:n], headerEnd) {
		more, err := c.Read(buf[n:])
		if n += more; err != nil || more == 0 {
			return 0, fmt.Errorf("after %d bytes of an answer: %w", n, errors.Join(err, io.ErrUnexpectedEOF))
		}
	}
	line := buf[:n]
	if !bytes.HasPrefix(line, statusLine) || n < len(statusLine)+3 {
		return 0, fmt.Errorf("the answer begins with %q; accepted: %q", line[:min(n, 16)], statusLine)
	}
	return strconv.Atoi(string(line[len(statusLine) : len(statusLine)+3]))
}
